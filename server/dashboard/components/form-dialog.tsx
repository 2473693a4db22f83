import { Button, Group, type ModalProps, Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import { Dialog } from './dialog.tsx'
import { ErrorNotice } from './error-notice.tsx'
import type { Sending } from './use-api-form.ts'

type Props = Sending & {
  title: string
  /** The words of the button that sends the form. */
  action: string
  /** The color of that button. Default: that of the theme. */
  color?: string
  size?: ModalProps['size']
  onClose: () => void
  /** The fields. */
  children: ReactNode
}

/** A dialog with a form of `useApiForm`. */
export function FormDialog({ title, action, color, size, error, isRunning, submit, onClose, children }: Props) {
  return (
    <Dialog {...(size !== undefined && { size })} onClose={onClose} title={title}>
      <form onSubmit={submit}>
        <Stack>
          {error !== null && <ErrorNotice error={error} />}
          {children}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" {...(color !== undefined && { color })} loading={isRunning}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}
