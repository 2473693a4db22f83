import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import type { ApiError } from '../api/client.ts'
import { Dialog } from './dialog.tsx'
import { ErrorNotice } from './error-notice.tsx'

type Props = {
  title: string
  children: ReactNode
  /** The label of the button: the act and its object. */
  action: string
  /** Has to be typed first, for what takes much with it. */
  typed?: string
  /** Default: it destroys something. */
  isHarmless?: boolean
  isRunning: boolean
  error: ApiError | null
  onConfirm: () => void
  onClose: () => void
}

/** Asks before something that cannot be undone. */
export function Confirm({ title, children, action, typed, isHarmless, isRunning, error, onConfirm, onClose }: Props) {
  const [text, setText] = useState('')
  const isReady = typed === undefined || text === typed
  return (
    <Dialog onClose={onClose} title={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          // React hands it on to a form around the dialog, which would be submitted too.
          event.stopPropagation()
          if (isReady) onConfirm()
        }}
      >
        <Stack>
          <Text component="div">{children}</Text>
          {typed !== undefined && (
            <TextInput
              data-autofocus
              label={
                <>
                  Type <code>{typed}</code> to confirm
                </>
              }
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
              autoComplete="off"
              spellCheck={false}
            />
          )}
          {error !== null && <ErrorNotice error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isRunning} disabled={!isReady} {...(!isHarmless && { color: 'red.8' })}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}
