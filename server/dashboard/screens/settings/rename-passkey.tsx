import { TextInput } from '@mantine/core'
import { useChange } from '../../api/hooks.ts'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'

type Props = { passkey: { id: string; name: string }; onClose: () => void }

export function RenamePasskey({ passkey: { id, name }, onClose }: Props) {
  const rename = useChange('PATCH /v1/user/passkeys/:id')
  const { form, ...sending } = useApiForm({
    initial: { name },
    send: async (body) => {
      await rename.mutateAsync({ params: { id }, body })
      onClose()
    },
  })
  return (
    <FormDialog title="Rename the passkey" action="Rename" {...sending} onClose={onClose}>
      <TextInput label="Name" required data-autofocus {...form.getInputProps('name')} />
    </FormDialog>
  )
}
