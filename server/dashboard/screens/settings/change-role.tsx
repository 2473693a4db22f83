import { Button, Group, Radio, Stack } from '@mantine/core'
import { type RowOf, useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { RoleOptions } from './role-options.tsx'

type Props = { member: RowOf<'GET /v1/members'>; onClose: () => void }

export function ChangeRole({ member: { userId, name, role }, onClose }: Props) {
  const { account } = useScope()
  const change = useChange('PATCH /v1/members/:userId')
  const { form, error, isRunning, submit } = useApiForm({
    initial: { role },
    send: async (body) => {
      await change.mutateAsync({ params: { userId }, body })
      onClose()
    },
  })
  return (
    <Dialog onClose={onClose} title={`Role of ${name}`}>
      <form onSubmit={submit}>
        <Stack>
          {error !== null && <ErrorNotice error={error} />}
          <Radio.Group label="Role" {...form.getInputProps('role')}>
            <RoleOptions by={account.role} />
          </Radio.Group>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isRunning}>
              Change role
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}
