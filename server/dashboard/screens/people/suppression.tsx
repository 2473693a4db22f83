import { notifications } from '@mantine/notifications'
import { type RowOf, useChange } from '../../api/hooks.ts'
import { Confirm } from '../../components/confirm.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { wordOf } from '../../components/state.tsx'

export type Suppression = RowOf<'GET /v1/suppressions'>

export const suppressionReasons: Readonly<Record<Suppression['reason'], string>> = {
  hard_bounce: 'Hard bounce',
  complaint: 'Complaint',
  unsubscribe: 'Unsubscribed',
  manual: 'Added by hand',
}

/** Where a suppression was learned: a link to the email, where there is one. */
export function SuppressionSource({ of: { source, emailId } }: { of: Suppression }) {
  return emailId === null ? wordOf(source) : <ScreenLink to={`/emails/${emailId}`}>{wordOf(source)}</ScreenLink>
}

export function RemoveSuppression({
  entry: { address, reason },
  onClose,
}: {
  entry: Suppression
  onClose: () => void
}) {
  const remove = useChange('DELETE /v1/suppressions/:address')
  const onSuccess = () => {
    notifications.show({ message: `${address} is written to again.` })
    onClose()
  }
  return (
    <Confirm
      title={`Write to ${address} again?`}
      action="Remove it from the list"
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { address } }, { onSuccess })}
    >
      It is here because: {suppressionReasons[reason].toLowerCase()}. Emails that bounce again, and people who complain
      again, harm how your other emails arrive.
    </Confirm>
  )
}
