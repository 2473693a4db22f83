import { notifications } from '@mantine/notifications'
import { useChange } from '../../api/hooks.ts'
import { Confirm } from '../../components/confirm.tsx'
import type { Audience } from './audience.ts'

type Props = {
  audience: Audience
  onClose: () => void
  /** Default: nothing more than closing. */
  onDeleted?: () => void
}

export function DeleteAudience({ audience: { id, name }, onClose, onDeleted }: Props) {
  const remove = useChange('DELETE /v1/audiences/:id')
  const onSuccess = () => {
    notifications.show({ message: `${name} was deleted.` })
    onClose()
    onDeleted?.()
  }
  return (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete the audience"
      typed={name}
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { id } }, { onSuccess })}
    >
      All its contacts are deleted, and it is forgotten who unsubscribed from it. The subscribers stay. This cannot be
      undone.
    </Confirm>
  )
}
