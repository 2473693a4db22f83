import { PasswordInput, Text } from '@mantine/core'
import { useUserChange } from '../../api/hooks.ts'
import { queryClient, sessionQuery } from '../../api/query-client.ts'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'

export function RemoveTotp({ onClose }: { onClose: () => void }) {
  const remove = useUserChange('POST /v1/user/totp/remove')
  const { form, ...sending } = useApiForm({
    initial: { password: '' },
    send: async (body) => {
      await remove.mutateAsync({ body })
      await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey })
      onClose()
    },
  })
  return (
    <FormDialog title="Turn the second factor off?" action="Turn off" color="red.8" {...sending} onClose={onClose}>
      <Text>Then the password alone is enough to sign in. The recovery codes stop working.</Text>
      <PasswordInput
        label="Password"
        autoComplete="current-password"
        required
        data-autofocus
        {...form.getInputProps('password')}
      />
    </FormDialog>
  )
}
