import { Anchor, Button, Stack, Text, TextInput, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { callForUser } from '../../api/query-client.ts'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { Centered } from '../../frame/centered.tsx'

/** Asks for a link that sets a new password. It says the same for every address. */
export function ForgotPassword() {
  const [askedFor, setAskedFor] = useState<string | null>(null)
  useEffect(() => {
    document.title = 'Forgot password · Postern'
  }, [])
  const { form, error, isRunning, submit } = useApiForm({
    initial: { email: '' },
    send: async ({ email }) => {
      await callForUser('POST /v1/password-resets', { body: { email } })
      setAskedFor(email)
    },
  })

  return (
    <Centered>
      <Title order={1}>{askedFor === null ? 'Forgot your password?' : 'Look at your email'}</Title>
      {askedFor === null ? (
        <form onSubmit={submit}>
          <Stack>
            {error !== null && <ErrorNotice error={error} />}
            <TextInput
              label="Email"
              description="The address that you sign in with. A link to set a new password is sent there."
              type="email"
              autoComplete="username"
              required
              autoFocus
              {...form.getInputProps('email')}
            />
            <Button type="submit" loading={isRunning}>
              Send the link
            </Button>
          </Stack>
        </form>
      ) : (
        <Text role="status">
          If <strong>{askedFor}</strong> has a user here, a link is on its way to it. The link works once, for an hour.
          Nothing there after a few minutes? Look among spam, or ask again 10 minutes from now.
        </Text>
      )}
      <Anchor component={Link} to="/sign-in" size="sm">
        Back to sign in
      </Anchor>
    </Centered>
  )
}
