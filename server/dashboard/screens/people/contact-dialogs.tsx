import { notifications } from '@mantine/notifications'
import { useChange } from '../../api/hooks.ts'
import { Confirm } from '../../components/confirm.tsx'

/** The actions in the menu of a contact. */
export type ContactAct = 'ask' | 'confirm' | 'unsubscribe' | 'resubscribe' | 'remove'

/** One person in one audience. */
export type ContactNames = { audienceId: string; audienceName: string; subscriberId: string; email: string }

type Props = { contact: ContactNames; onClose: () => void }

/** The dialog of one act. */
export function ContactDialog({ act, ...props }: Props & { act: ContactAct }) {
  if (act === 'remove') return <RemoveContact {...props} />
  if (act === 'ask') return <AskToConfirm {...props} />
  return <ChangeStatus {...props} act={act} />
}

function AskToConfirm({ contact: { audienceId, audienceName, subscriberId, email }, onClose }: Props) {
  const ask = useChange('POST /v1/audiences/:audienceId/contacts/:subscriberId/confirmation')
  const onSuccess = () => {
    notifications.show({ message: `${email} was asked to confirm.` })
    onClose()
  }
  return (
    <Confirm
      title={`Ask ${email} again?`}
      action="Send the confirmation again"
      isHarmless
      isRunning={ask.isPending}
      error={ask.error}
      onClose={onClose}
      onConfirm={() => ask.mutate({ params: { audienceId, subscriberId }, body: {} }, { onSuccess })}
    >
      {email} gets another email with a link to confirm that they want emails of {audienceName}. It holds for 7 days.
    </Confirm>
  )
}

type StatusAct = 'confirm' | 'unsubscribe' | 'resubscribe'

const statusActs: Readonly<Record<StatusAct, { title: (email: string, audience: string) => string; action: string }>> =
  {
    confirm: { title: (email) => `Mark ${email} as confirmed?`, action: 'Mark as confirmed' },
    unsubscribe: { title: (email, audience) => `Unsubscribe ${email} from ${audience}?`, action: 'Unsubscribe' },
    resubscribe: { title: (email, audience) => `Subscribe ${email} to ${audience} again?`, action: 'Subscribe again' },
  }

function ChangeStatus({ act, contact, onClose }: Props & { act: StatusAct }) {
  const { audienceId, audienceName, subscriberId, email } = contact
  const update = useChange('PATCH /v1/audiences/:audienceId/contacts/:subscriberId')
  const leaves = act === 'unsubscribe'
  const body = { status: leaves ? ('unsubscribed' as const) : ('active' as const) }
  return (
    <Confirm
      title={statusActs[act].title(email, audienceName)}
      action={statusActs[act].action}
      isHarmless={!leaves}
      isRunning={update.isPending}
      error={update.error}
      onClose={onClose}
      onConfirm={() => update.mutate({ params: { audienceId, subscriberId }, body }, { onSuccess: onClose })}
    >
      {leaves && `${email} gets no more email to ${audienceName}. Other audiences stay as they are. `}
      {act === 'confirm'
        ? 'Only do this when the person confirmed in another way: they get emails from then on.'
        : 'Only do this when the person asked for it.'}
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
