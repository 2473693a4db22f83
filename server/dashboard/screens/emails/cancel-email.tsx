import { useChange } from '../../api/hooks.ts'
import { Confirm } from '../../components/confirm.tsx'

/** Asks before a scheduled email is canceled. */
export function CancelEmail({ id, onClose }: { id: string; onClose: () => void }) {
  const cancel = useChange('POST /v1/emails/:id/cancel')
  return (
    <Confirm
      title="Cancel this email?"
      action="Cancel the email"
      isRunning={cancel.isPending}
      error={cancel.error}
      onClose={onClose}
      onConfirm={() => cancel.mutate({ params: { id } }, { onSuccess: onClose })}
    >
      It is not sent to anybody. A canceled email cannot be scheduled again.
    </Confirm>
  )
}
