import { notifications } from '@mantine/notifications'
import { useChange } from '../../api/hooks.ts'
import { Confirm } from '../../components/confirm.tsx'

/** What the menu of a contact offers. */
export type ContactAct = 'unsubscribe' | 'resubscribe' | 'remove'

/** One person in one audience. */
export type ContactNames = { audienceId: string; audienceName: string; subscriberId: string; email: string }

type Props = { contact: ContactNames; onClose: () => void }

/** The dialog of one act. */
export function ContactDialog({ act, ...props }: Props & { act: ContactAct }) {
  if (act === 'remove') return <RemoveContact {...props} />
  return <ChangeStatus {...props} act={act} />
}

function ChangeStatus({ act, contact, onClose }: Props & { act: 'unsubscribe' | 'resubscribe' }) {
  const { audienceId, audienceName, subscriberId, email } = contact
  const update = useChange('PATCH /v1/audiences/:audienceId/contacts/:subscriberId')
  const leaves = act === 'unsubscribe'
  const body = { status: leaves ? ('unsubscribed' as const) : ('active' as const) }
  return (
    <Confirm
      title={leaves ? `Unsubscribe ${email} from ${audienceName}?` : `Subscribe ${email} to ${audienceName} again?`}
      action={leaves ? 'Unsubscribe' : 'Subscribe again'}
      isHarmless={!leaves}
      isRunning={update.isPending}
      error={update.error}
      onClose={onClose}
      onConfirm={() => update.mutate({ params: { audienceId, subscriberId }, body }, { onSuccess: onClose })}
    >
      {leaves && `${email} gets no more email to ${audienceName}. Other audiences stay as they are. `}
      Only do this when the person asked for it.
    </Confirm>
  )
}

function RemoveContact({ contact: { audienceId, audienceName, subscriberId, email }, onClose }: Props) {
  const remove = useChange('DELETE /v1/audiences/:audienceId/contacts/:subscriberId')
  const onSuccess = () => {
    notifications.show({ message: `${email} was removed from ${audienceName}.` })
    onClose()
  }
  return (
    <Confirm
      title={`Remove ${email} from ${audienceName}?`}
      action="Remove the contact"
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { audienceId, subscriberId } }, { onSuccess })}
    >
      The subscriber stays. It is forgotten whether they unsubscribed from {audienceName}: a person who asked for no
      more email is unsubscribed, not removed.
    </Confirm>
  )
}
