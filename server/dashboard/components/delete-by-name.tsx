import { notifications } from '@mantine/notifications'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Input, Operation } from '../api/client.ts'
import { useChange } from '../api/hooks.ts'
import { useScope } from '../api/scope.tsx'
import { Confirm } from './confirm.tsx'

type Deletion = Extract<Operation, `DELETE ${string}`>

type Props<K extends Deletion> = {
  operation: K
  input: Input<K>
  /** The kind of object, such as `audience`. */
  what: string
  /** Has to be typed before it is deleted. */
  name: string
  /** The screen that is shown when it is deleted. Default: the same. */
  leadsTo?: string
  onClose: () => void
  /** The text of the dialog: what is lost with the object, and what stays. */
  children: ReactNode
}

/** Deletes an object when its name is typed, and says so. */
export function DeleteByName<K extends Deletion>({
  operation,
  input,
  what,
  name,
  leadsTo,
  onClose,
  children,
}: Props<K>) {
  const { path } = useScope()
  const navigate = useNavigate()
  const remove = useChange(operation)
  const onSuccess = () => {
    notifications.show({ message: `${name} was deleted.` })
    onClose()
    if (leadsTo !== undefined) void navigate({ to: path(leadsTo) })
  }
  return (
    <Confirm
      title={`Delete ${name}?`}
      action={`Delete the ${what}`}
      typed={name}
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate(input, { onSuccess })}
    >
      {children}
    </Confirm>
  )
}
