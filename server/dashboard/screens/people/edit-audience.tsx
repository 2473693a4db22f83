import { Textarea, TextInput } from '@mantine/core'
import { useChange } from '../../api/hooks.ts'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import type { Audience } from './audience.ts'

export function EditAudience({ audience, onClose }: { audience: Audience; onClose: () => void }) {
  const { id, name, description } = audience
  const update = useChange('PATCH /v1/audiences/:id')
  const { form, ...sending } = useApiForm({
    initial: { name, description: description ?? '' },
    send: async (values) => {
      const body = { name: values.name, description: values.description === '' ? null : values.description }
      await update.mutateAsync({ params: { id }, body })
      onClose()
    },
  })
  return (
    <FormDialog title="Edit the audience" action="Save" {...sending} onClose={onClose}>
      <TextInput label="Name" required data-autofocus {...form.getInputProps('name')} />
      <Textarea label="Description" {...form.getInputProps('description')} />
    </FormDialog>
  )
}
