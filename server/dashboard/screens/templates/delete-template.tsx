import { notifications } from '@mantine/notifications'
import { useChange } from '../../api/hooks.ts'
import { Confirm } from '../../components/confirm.tsx'
import type { TemplateSummary } from './template.ts'

type Props = {
  template: TemplateSummary
  onClose: () => void
  /** Default: nothing more than closing. */
  onDeleted?: () => void
}

export function DeleteTemplate({ template: { id, name }, onClose, onDeleted }: Props) {
  const remove = useChange('DELETE /v1/templates/:id')
  const onSuccess = () => {
    notifications.show({ message: `${name} was deleted.` })
    onClose()
    onDeleted?.()
  }
  return (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete the template"
      typed={name}
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { id } }, { onSuccess })}
    >
      It is deleted with its versions, and emails that name it are refused from now on. Emails that were made of it
      stay. This cannot be undone.
    </Confirm>
  )
}
