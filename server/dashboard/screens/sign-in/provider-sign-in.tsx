import { Button } from '@mantine/core'
import { useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { leaveFor } from '../../api/provider.ts'
import { callForUser } from '../../api/query-client.ts'
import { ErrorNotice } from '../../components/error-notice.tsx'

/** The button to sign in with the identity provider. @param props.next Where to go afterwards. */
export function ProviderSignIn({ name, next }: { name: string; next: string }) {
  const [isRunning, setRunning] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)

  async function go(): Promise<void> {
    setRunning(true)
    setError(null)
    try {
      const { url } = await callForUser('POST /v1/session/provider/options', {})
      leaveFor(url, { purpose: 'sign in', next })
    } catch (thrown) {
      setRunning(false)
      if (!(thrown instanceof ApiError)) throw thrown
      setError(thrown)
    }
  }

  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <Button variant="default" loading={isRunning} onClick={() => void go()}>
        Sign in with {name}
      </Button>
    </>
  )
}
