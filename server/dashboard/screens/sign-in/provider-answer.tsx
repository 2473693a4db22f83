import { Anchor, Loader, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { takeAnswer } from '../../api/provider.ts'
import { callForUser } from '../../api/query-client.ts'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Centered } from '../../frame/centered.tsx'
import { safeNext } from './safe-next.ts'
import { startSession } from './start-session.ts'

/** The page that the identity provider leads back to. */
export function ProviderAnswer() {
  const [{ errand, answer }] = useState(takeAnswer)
  const navigate = useNavigate()
  // A query, since it runs once for the page: an answer is good once.
  const { data, error } = useQuery({
    queryKey: ['provider answer', answer?.state],
    queryFn: async () => {
      if (answer === null) return null
      if (errand.purpose === 'link') return callForUser('POST /v1/user/identities', { body: answer })
      return callForUser('POST /v1/session/provider', { body: answer })
    },
    enabled: answer !== null,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  })
  useEffect(() => {
    document.title = 'Signing in · Postern'
  }, [])
  useEffect(() => {
    if (data === undefined || data === null) return
    if ('session' in data) startSession(data)
    void navigate({ to: safeNext(errand.next), replace: true })
  }, [data, errand, navigate])

  if (answer === null || error !== null) {
    const isLink = errand.purpose === 'link'
    return (
      <Centered>
        <Title order={1}>{isLink ? 'You are not linked' : 'You are not signed in'}</Title>
        {error instanceof ApiError ? (
          <ErrorNotice error={error} />
        ) : (
          <Text>The identity provider did not sign you in.</Text>
        )}
        {isLink ? (
          <Anchor component={Link} to={safeNext(errand.next)}>
            Back
          </Anchor>
        ) : (
          <Anchor component={Link} to="/sign-in">
            Sign in
          </Anchor>
        )}
      </Centered>
    )
  }
  return (
    <Centered>
      <Loader size="sm" aria-label="Signing in" />
    </Centered>
  )
}
