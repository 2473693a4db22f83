import { Button, Group, Radio, Stack, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import type { Role } from '../../../../contract/roles.ts'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { ExactTime } from '../../components/time.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { RoleOptions } from './role-options.tsx'

/** Asks whom to invite as what. Shows the link once, unless the service sends it by email. */
export function Invite({ onClose }: { onClose: () => void }) {
  const { account } = useScope()
  const create = useChange('POST /v1/invitations')
  const [shown, setShown] = useState<{ email: string; expiresAt: string; link: string } | null>(null)
  const { form, ...sending } = useApiForm({
    initial: { email: '', role: 'developer' as Role },
    send: async (body) => {
      const { email, expiresAt, link } = await create.mutateAsync({ body })
      if (link !== null) return setShown({ email, expiresAt, link })
      notifications.show({ message: `The invitation is on its way to ${email}.` })
      onClose()
    },
  })
  if (shown !== null) {
    return (
      <Dialog size="lg" onClose={onClose} title="Send this link" closeOnClickOutside={false}>
        <Stack>
          <Text>
            Send it to {shown.email} yourself. It is shown only now, works once, and until{' '}
            <ExactTime at={shown.expiresAt} />.
          </Text>
          <Copyable label="Copy the link" value={shown.link} wraps />
          <Group justify="flex-end">
            <Button onClick={onClose}>I have copied it</Button>
          </Group>
        </Stack>
      </Dialog>
    )
  }
  return (
    <FormDialog title={`Invite to ${account.name}`} action="Invite" {...sending} onClose={onClose}>
      <TextInput label="Email" type="email" required data-autofocus {...form.getInputProps('email')} />
      <Radio.Group label="Role" {...form.getInputProps('role')}>
        <RoleOptions by={account.role} />
      </Radio.Group>
    </FormDialog>
  )
}
