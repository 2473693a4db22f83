import { Radio } from '@mantine/core'
import { type RowOf, useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { RoleOptions } from './role-options.tsx'

type Props = { member: RowOf<'GET /v1/members'>; onClose: () => void }

export function ChangeRole({ member: { userId, name, role }, onClose }: Props) {
  const { account } = useScope()
  const change = useChange('PATCH /v1/members/:userId')
  const { form, ...sending } = useApiForm({
    initial: { role },
    send: async (body) => {
      await change.mutateAsync({ params: { userId }, body })
      onClose()
    },
  })
  return (
    <FormDialog title={`Role of ${name}`} action="Change role" {...sending} onClose={onClose}>
      <Radio.Group label="Role" {...form.getInputProps('role')}>
        <RoleOptions by={account.role} />
      </Radio.Group>
    </FormDialog>
  )
}
