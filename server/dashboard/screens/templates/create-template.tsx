import { TextInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'

/** The initial content of a new template. It has a variable, so that the preview shows how variables are used. */
const firstHtml = `<p>Hello {{ firstName }},</p>

<p>Write your message here.</p>
`
const firstVariables = [{ name: 'firstName', type: 'string' as const, fallback: 'there' }]

/** Asks for name and subject, then leads to where the rest is written. */
export function CreateTemplate({ onClose }: { onClose: () => void }) {
  const { path } = useScope()
  const navigate = useNavigate()
  const create = useChange('POST /v1/templates')
  const { form, ...sending } = useApiForm({
    initial: { name: '', subject: '' },
    send: async ({ name, subject }) => {
      const { id } = await create.mutateAsync({ body: { name, subject, html: firstHtml, variables: firstVariables } })
      onClose()
      await navigate({ to: path(`/templates/${id}`) })
    },
  })
  return (
    <FormDialog title="Create a template" action="Create template" {...sending} onClose={onClose}>
      <TextInput
        label="Name"
        description="What you and your colleagues call it."
        required
        data-autofocus
        maxLength={200}
        {...form.getInputProps('name')}
      />
      <TextInput
        label="Subject"
        description="May have variables, such as {{ firstName }}."
        required
        {...form.getInputProps('subject')}
      />
    </FormDialog>
  )
}
