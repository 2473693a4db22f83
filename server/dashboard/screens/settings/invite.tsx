import { Button, Group, Radio, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { Role } from '../../../../contract/roles.ts'
import type { Result } from '../../api/client.ts'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { ExactTime } from '../../components/time.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { RoleOptions } from './role-options.tsx'

/** Asks whom to invite as what, and shows the link once. */
export function Invite({ onClose }: { onClose: () => void }) {
  const { account } = useScope()
  const create = useChange('POST /v1/invitations')
  const [created, setCreated] = useState<Result<'POST /v1/invitations'> | null>(null)
  const { form, ...sending } = useApiForm({
    initial: { email: '', role: 'developer' as Role },
    send: async (body) => setCreated(await create.mutateAsync({ body })),
  })
  if (created !== null) {
    return (
      <Dialog size="lg" onClose={onClose} title="Send this link" closeOnClickOutside={false}>
        <Stack>
          <Text>
            Send it to {created.email} yourself. It is shown only now, works once, and until{' '}
            <ExactTime at={created.expiresAt} />.
          </Text>
          <Copyable label="Copy the link" value={created.link} wraps />
          <Group justify="flex-end">
            <Button onClick={onClose}>I have copied it</Button>
          </Group>
        </Stack>
      </Dialog>
    )
  }
  return (
    <FormDialog title={`Invite to ${account.name}`} action="Make a link" {...sending} onClose={onClose}>
      <TextInput label="Email" type="email" required data-autofocus {...form.getInputProps('email')} />
      <Radio.Group label="Role" {...form.getInputProps('role')}>
        <RoleOptions by={account.role} />
      </Radio.Group>
    </FormDialog>
  )
}
