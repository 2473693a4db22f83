import { TextInput } from '@mantine/core'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'

export type NewPerson = { email: string; firstName?: string; lastName?: string }

type Props = {
  title: string
  action: string
  /** Adds the person. The dialog closes when it has resolved. */
  send: (person: NewPerson) => Promise<unknown>
  onClose: () => void
}

/** The dialog that adds a person, to the account or to an audience. */
export function AddPerson({ title, action, send, onClose }: Props) {
  const { form, ...sending } = useApiForm({
    initial: { email: '', firstName: '', lastName: '' },
    send: async ({ email, firstName, lastName }) => {
      await send({ email, ...(firstName !== '' && { firstName }), ...(lastName !== '' && { lastName }) })
      onClose()
    },
  })
  return (
    <FormDialog title={title} action={action} {...sending} onClose={onClose}>
      <TextInput label="Email" type="email" required data-autofocus {...form.getInputProps('email')} />
      <TextInput label="First name" {...form.getInputProps('firstName')} />
      <TextInput label="Last name" {...form.getInputProps('lastName')} />
    </FormDialog>
  )
}
