import { Textarea, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useNavigate } from '@tanstack/react-router'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'

/** Sends one email, to see that it works. */
export function SendEmail({ onClose }: { onClose: () => void }) {
  const { session, mode, path } = useScope()
  const navigate = useNavigate()
  const send = useChange('POST /v1/emails')
  const { form, ...sending } = useApiForm({
    initial: { from: '', to: session.user.email, subject: 'A test', text: 'It works.' },
    send: async (body) => {
      const { id } = await send.mutateAsync({ body })
      notifications.show({ message: 'The email was accepted.' })
      onClose()
      await navigate({ to: path(`/emails/${id}`) })
    },
  })
  return (
    <FormDialog title="Send an email" action="Send" {...sending} onClose={onClose}>
      <TextInput
        label="From"
        description={
          mode === 'live' ? 'An address at a verified domain of the account.' : 'Any address: test mode sends nothing.'
        }
        placeholder="Shop <hello@example.com>"
        required
        data-autofocus
        {...form.getInputProps('from')}
      />
      <TextInput label="To" required {...form.getInputProps('to')} />
      <TextInput label="Subject" required {...form.getInputProps('subject')} />
      <Textarea label="Text" autosize minRows={3} required {...form.getInputProps('text')} />
    </FormDialog>
  )
}
