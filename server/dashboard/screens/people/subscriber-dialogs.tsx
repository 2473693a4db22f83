import { TextInput } from '@mantine/core'
import { useChange } from '../../api/hooks.ts'
import { Confirm } from '../../components/confirm.tsx'
import { DeleteByName } from '../../components/delete-by-name.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import type { Subscriber } from './person.ts'

/** The actions in the menu of a subscriber. */
export type SubscriberAct = 'edit' | 'unsubscribe' | 'resubscribe' | 'delete'

type Props = { subscriber: Subscriber; onClose: () => void }

/** The dialog of one act. `leadsTo` is the screen that is shown when the subscriber is deleted. Default: the same. */
export function SubscriberDialog({ act, leadsTo, ...props }: Props & { act: SubscriberAct; leadsTo?: string }) {
  if (act === 'edit') return <EditSubscriber {...props} />
  if (act === 'unsubscribe') return <Unsubscribe {...props} />
  if (act === 'resubscribe') return <Resubscribe {...props} />
  return <DeleteSubscriber {...props} {...(leadsTo !== undefined && { leadsTo })} />
}

function EditSubscriber({ subscriber: { id, email, firstName, lastName }, onClose }: Props) {
  const update = useChange('PATCH /v1/subscribers/:id')
  const { form, ...sending } = useApiForm({
    initial: { email, firstName: firstName ?? '', lastName: lastName ?? '' },
    send: async (values) => {
      const body = {
        email: values.email,
        firstName: values.firstName === '' ? null : values.firstName,
        lastName: values.lastName === '' ? null : values.lastName,
      }
      await update.mutateAsync({ params: { id }, body })
      onClose()
    },
  })
  return (
    <FormDialog title="Edit the subscriber" action="Save" {...sending} onClose={onClose}>
      <TextInput label="Email" type="email" required data-autofocus {...form.getInputProps('email')} />
      <TextInput label="First name" {...form.getInputProps('firstName')} />
      <TextInput label="Last name" {...form.getInputProps('lastName')} />
    </FormDialog>
  )
}

function Unsubscribe({ subscriber: { id, email }, onClose }: Props) {
  const unsubscribe = useChange('POST /v1/subscribers/:id/unsubscribe')
  return (
    <Confirm
      title={`Unsubscribe ${email}?`}
      action="Unsubscribe"
      isRunning={unsubscribe.isPending}
      error={unsubscribe.error}
      onClose={onClose}
      onConfirm={() => unsubscribe.mutate({ params: { id } }, { onSuccess: onClose })}
    >
      {email} gets no more email to audiences. Only do this when the person asked for it.
    </Confirm>
  )
}

function Resubscribe({ subscriber: { id, email }, onClose }: Props) {
  const update = useChange('PATCH /v1/subscribers/:id')
  return (
    <Confirm
      title={`Subscribe ${email} again?`}
      action="Subscribe again"
      isHarmless
      isRunning={update.isPending}
      error={update.error}
      onClose={onClose}
      onConfirm={() => update.mutate({ params: { id }, body: { status: 'active' } }, { onSuccess: onClose })}
    >
      Only do this when the person asked for it. In each audience that they unsubscribed from they stay unsubscribed,
      until you subscribe them there.
    </Confirm>
  )
}

function DeleteSubscriber({ subscriber: { id, email }, ...rest }: Props & { leadsTo?: string }) {
  return (
    <DeleteByName
      operation="DELETE /v1/subscribers/:id"
      input={{ params: { id } }}
      what="subscriber"
      name={email}
      {...rest}
    >
      The person leaves every audience, and it is forgotten whether they unsubscribed. This cannot be undone.
    </DeleteByName>
  )
}
