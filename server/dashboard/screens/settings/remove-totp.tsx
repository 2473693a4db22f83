import { Button, Group, PasswordInput, Stack, Text } from '@mantine/core'
import { useUserChange } from '../../api/hooks.ts'
import { queryClient, sessionQuery } from '../../api/query-client.ts'
import { Dialog } from '../../components/dialog.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { useApiForm } from '../../components/use-api-form.ts'

export function RemoveTotp({ onClose }: { onClose: () => void }) {
  const remove = useUserChange('POST /v1/user/totp/remove')
  const { form, error, isRunning, submit } = useApiForm({
    initial: { password: '' },
    send: async (body) => {
      await remove.mutateAsync({ body })
      await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey })
      onClose()
    },
  })
  return (
    <Dialog onClose={onClose} title="Turn the second factor off?">
      <form onSubmit={submit}>
        <Stack>
          <Text>Then the password alone is enough to sign in. The recovery codes stop working.</Text>
          {error !== null && <ErrorNotice error={error} />}
          <PasswordInput
            label="Password"
            autoComplete="current-password"
            required
            data-autofocus
            {...form.getInputProps('password')}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" color="red.8" loading={isRunning}>
              Turn off
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}
