import { Alert, Button, Group, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { useUserChange } from '../../api/hooks.ts'
import { queryClient, sessionQuery } from '../../api/query-client.ts'
import { useScope } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Section } from '../../components/facts.tsx'
import { Screen } from '../../components/screen.tsx'
import { State } from '../../components/state.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { Identities } from './identities.tsx'
import { Passkeys } from './passkeys.tsx'
import { RemoveTotp } from './remove-totp.tsx'
import { SetUpTotp } from './set-up-totp.tsx'

/** The password, the second factor, the passkeys and the identity provider of the user. */
export function Security() {
  const { user } = useScope().session
  const [asked, setAsked] = useState<'set up' | 'remove' | null>(null)
  return (
    <Screen title="Sign-in security" subtitle={`How ${user.email} signs in. It holds for all accounts.`}>
      <Section title="Second factor">
        <Group justify="space-between" maw={560}>
          <div>
            <State of={user.hasTotp ? 'enabled' : 'disabled'} />
            <Text c="dimmed" mt={4}>
              {user.hasTotp
                ? 'Signing in with the password asks for a code of your authenticator app.'
                : 'A code of an app, asked for besides the password. Without it, the password alone is enough to sign in.'}
            </Text>
          </div>
          {user.hasTotp ? (
            <Button variant="default" onClick={() => setAsked('remove')}>
              Turn off
            </Button>
          ) : (
            <Button onClick={() => setAsked('set up')}>Set up</Button>
          )}
        </Group>
      </Section>
      <Section title="Password">
        <PasswordForm />
      </Section>
      <Section title="Name">
        <NameForm name={user.name} />
      </Section>
      {/* Last, since they grow when they are read. */}
      <Passkeys />
      <Identities />
      {asked === 'set up' && <SetUpTotp onClose={() => setAsked(null)} />}
      {asked === 'remove' && <RemoveTotp onClose={() => setAsked(null)} />}
    </Screen>
  )
}

function NameForm({ name }: { name: string }) {
  const change = useUserChange('PATCH /v1/user')
  const { form, error, isRunning, submit } = useApiForm({
    initial: { name },
    send: async (values) => {
      await change.mutateAsync({ body: values })
      form.resetDirty(values)
      await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey })
      notifications.show({ message: 'Your name was changed.' })
    },
  })
  return (
    <form onSubmit={submit}>
      <Stack maw={420}>
        {error !== null && <ErrorNotice error={error} />}
        <TextInput
          label="Your name"
          description="As the other members see it, also in the audit log from now on."
          autoComplete="name"
          required
          {...form.getInputProps('name')}
        />
        <Group>
          <Button type="submit" variant="default" loading={isRunning} disabled={!form.isDirty()}>
            Change your name
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

function PasswordForm() {
  const change = useUserChange('PATCH /v1/user')
  const { form, error, isRunning, submit } = useApiForm({
    initial: { current: '', next: '', again: '' },
    fieldOf: { 'password.current': 'current', 'password.new': 'next' },
    check: ({ next, again }) => (next === again ? {} : { again: 'Must be the same as the new password' }),
    send: async ({ current, next }) => {
      await change.mutateAsync({ body: { password: { current, new: next } } })
      form.reset()
      await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey })
      notifications.show({ message: 'The password was changed. All your other sessions have ended.' })
    },
  })
  return (
    <form onSubmit={submit}>
      <Stack maw={420}>
        {error !== null && <ErrorNotice error={error} />}
        <PasswordInput
          label="Current password"
          autoComplete="current-password"
          required
          {...form.getInputProps('current')}
        />
        <PasswordInput
          label="New password"
          description="12 characters or more."
          autoComplete="new-password"
          required
          {...form.getInputProps('next')}
        />
        <PasswordInput
          label="New password again"
          autoComplete="new-password"
          required
          {...form.getInputProps('again')}
        />
        <Alert variant="light" color="gray" role="note">
          Changing it ends all your other sessions.
        </Alert>
        <Group>
          <Button type="submit" variant="default" loading={isRunning}>
            Change password
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
