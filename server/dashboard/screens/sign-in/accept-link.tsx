import { Anchor, Button, Loader, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ApiError, type Result } from '../../api/client.ts'
import { callForUser } from '../../api/query-client.ts'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { SecondFactorInput } from '../../components/second-factor-input.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { Centered } from '../../frame/centered.tsx'
import { startSession } from './start-session.ts'

type OneTimeLink = Result<'POST /v1/links/look-up'>

/** Takes the token out of the address at once, so that neither history nor a shared screen keeps it. */
function takeToken(): string {
  const token = new URLSearchParams(window.location.hash.slice(1)).get('token') ?? ''
  if (token !== '') window.history.replaceState(window.history.state, '', window.location.pathname)
  return token
}

export function AcceptLink() {
  const [token] = useState(takeToken)
  const { data, error } = useQuery({
    queryKey: ['link', token],
    queryFn: () => callForUser('POST /v1/links/look-up', { body: { token } }),
    enabled: token !== '',
    staleTime: Number.POSITIVE_INFINITY,
  })
  useEffect(() => {
    document.title = 'Welcome · Postern'
  }, [])

  if (token === '' || (error instanceof ApiError && error.status === 404)) return <UnusableLink />
  if (error instanceof ApiError) {
    return (
      <Centered>
        <Title order={1}>The link could not be read</Title>
        <ErrorNotice error={error} />
      </Centered>
    )
  }
  if (data === undefined) {
    return (
      <Centered>
        <Loader size="sm" aria-label="Reading the link" />
      </Centered>
    )
  }
  return <AcceptForm token={token} link={data} />
}

function UnusableLink() {
  return (
    <Centered>
      <Title order={1}>This link does not work any more</Title>
      <Text>
        It was used already, has expired, or is not complete. Ask the sender for a new one. On a new service, run{' '}
        <code>npm run postern -- users invite you@example.com</code>
      </Text>
      <Anchor component={Link} to="/forgot-password">
        Send me a link to set a new password
      </Anchor>
      <Anchor component={Link} to="/sign-in">
        Sign in
      </Anchor>
    </Centered>
  )
}

const titles = {
  first_user: 'Welcome to Postern',
  invitation: 'Join the account',
  password_reset: 'Choose a new password',
}

const buttons = { first_user: 'Create your user', invitation: 'Join', password_reset: 'Set the password' }

function AcceptForm({ token, link }: { token: string; link: OneTimeLink }) {
  const { kind, email, accountName, role, hasUser } = link
  const navigate = useNavigate()
  const [needsCode, setNeedsCode] = useState(false)
  const isNew = kind !== 'password_reset' && !hasUser
  const asksPresentPassword = kind === 'invitation' && hasUser
  const { form, error, isRunning, submit } = useApiForm({
    initial: { name: '', email: email ?? '', password: '', code: '' },
    send: async (values) => {
      const body = {
        token,
        password: values.password,
        ...(isNew && { name: values.name }),
        ...(kind === 'first_user' && { email: values.email }),
        ...(needsCode && { code: values.code.replaceAll(' ', '') }),
      }
      try {
        startSession(await callForUser('POST /v1/links/accept', { body }))
      } catch (thrown) {
        if (!(thrown instanceof ApiError && thrown.code === 'second_factor_needed')) throw thrown
        setNeedsCode(true)
        return
      }
      await navigate({ to: '/' })
    },
  })

  return (
    <Centered>
      <Title order={1}>{titles[kind]}</Title>
      {kind === 'first_user' && <Text>You become the owner of this service’s first account.</Text>}
      {kind === 'invitation' && (
        <Text>
          You are invited to <strong>{accountName}</strong> as <strong>{role}</strong>.
        </Text>
      )}
      <form onSubmit={submit}>
        <Stack>
          {error !== null && <ErrorNotice error={error} />}
          {isNew && (
            <TextInput label="Your name" autoComplete="name" required autoFocus {...form.getInputProps('name')} />
          )}
          <TextInput
            label="Email"
            type="email"
            autoComplete="username"
            required
            readOnly={email !== null}
            {...form.getInputProps('email')}
          />
          <PasswordInput
            label={asksPresentPassword ? 'Your password' : 'Password'}
            description={asksPresentPassword ? 'You have a user here already.' : '12 characters or more.'}
            autoComplete={asksPresentPassword ? 'current-password' : 'new-password'}
            required
            {...form.getInputProps('password')}
          />
          {needsCode && <SecondFactorInput form={form} />}
          <Button type="submit" loading={isRunning}>
            {buttons[kind]}
          </Button>
        </Stack>
      </form>
    </Centered>
  )
}
