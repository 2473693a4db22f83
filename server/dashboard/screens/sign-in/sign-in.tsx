import { Anchor, Button, Divider, PasswordInput, Stack, TextInput, Title } from '@mantine/core'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { useSignInMethods, worksHere } from '../../api/passkeys.ts'
import { callForUser } from '../../api/query-client.ts'
import type { Session } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { SecondFactorInput } from '../../components/second-factor-input.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { Centered } from '../../frame/centered.tsx'
import { PasskeySignIn } from './passkey-sign-in.tsx'
import { ProviderSignIn } from './provider-sign-in.tsx'
import { safeNext } from './safe-next.ts'
import { startSession } from './start-session.ts'

export function SignIn() {
  const { next }: { next?: unknown } = useSearch({ strict: false })
  const navigate = useNavigate()
  const [needsCode, setNeedsCode] = useState(false)
  useEffect(() => {
    document.title = 'Sign in · Postern'
  }, [])

  const methods = useSignInMethods()
  const hasPasskeys = worksHere(methods?.passkeyOrigin) && !needsCode
  const provider = methods?.provider?.origin === window.location.origin && !needsCode ? methods.provider : null
  const enter = (session: Session) => {
    startSession(session)
    return navigate({ to: safeNext(next) })
  }

  const { form, error, isRunning, submit } = useApiForm({
    initial: { email: '', password: '', code: '' },
    send: async ({ email, password, code }) => {
      try {
        const body = { email, password, ...(needsCode && { code: code.replaceAll(' ', '') }) }
        await enter(await callForUser('POST /v1/session', { body }))
      } catch (thrown) {
        if (!(thrown instanceof ApiError && thrown.code === 'second_factor_needed')) throw thrown
        setNeedsCode(true)
      }
    },
  })

  return (
    <Centered>
      <Title order={1}>Sign in</Title>
      <form onSubmit={submit}>
        <Stack>
          {error !== null && <ErrorNotice error={error} />}
          <TextInput
            label="Email"
            type="email"
            autoComplete="username webauthn"
            required
            autoFocus
            readOnly={needsCode}
            {...form.getInputProps('email')}
          />
          <PasswordInput
            label="Password"
            autoComplete="current-password"
            required
            readOnly={needsCode}
            {...form.getInputProps('password')}
          />
          {needsCode && <SecondFactorInput form={form} />}
          <Button type="submit" loading={isRunning}>
            {needsCode ? 'Confirm' : 'Sign in'}
          </Button>
          <Anchor component={Link} to="/forgot-password" size="sm">
            Forgot your password?
          </Anchor>
          {(hasPasskeys || provider !== null) && <Divider label="or" />}
          {provider !== null && <ProviderSignIn name={provider.name} next={safeNext(next)} />}
          {hasPasskeys && <PasskeySignIn onSession={(session) => void enter(session)} />}
        </Stack>
      </form>
    </Centered>
  )
}
