import { Button } from '@mantine/core'
import { IconFingerprint } from '@tabler/icons-react'
import { useEffect, useRef, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { cancelPasskey, hasAutofill, signInWithPasskey } from '../../api/passkeys.ts'
import type { Session } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'

/** A challenge is good for five minutes. Before, the offer is made anew with another. */
const renewMs = 4 * 60_000

/**
 * The button to sign in with a passkey. While it is shown, the browser offers passkeys also where the address is typed.
 */
export function PasskeySignIn({ onSession }: { onSession: (session: Session) => void }) {
  const [isRunning, setRunning] = useState(false)
  const [round, setRound] = useState(0)
  const [error, setError] = useState<ApiError | null>(null)
  const tell = useRef(onSession)
  tell.current = onSession

  // biome-ignore lint/correctness/useExhaustiveDependencies: each round makes a new offer
  useEffect(() => {
    if (isRunning) return
    let isOver = false
    const offer = async () => {
      if (!(await hasAutofill()) || isOver) return
      const session = await signInWithPasskey({ isOffered: true })
      if (session !== null && !isOver) tell.current(session)
    }
    // Only what the API says about a passkey that was chosen is for the user.
    offer().catch((thrown: unknown) => !isOver && setError(refusalOf(thrown)))
    const timer = setTimeout(() => setRound((count) => count + 1), renewMs)
    return () => {
      isOver = true
      clearTimeout(timer)
      cancelPasskey()
    }
  }, [isRunning, round])

  async function ask(): Promise<void> {
    setRunning(true)
    setError(null)
    try {
      const session = await signInWithPasskey({ isOffered: false })
      if (session !== null) onSession(session)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      setError(thrown)
    } finally {
      setRunning(false)
    }
  }

  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <Button
        variant="default"
        leftSection={<IconFingerprint size={18} aria-hidden />}
        loading={isRunning}
        onClick={() => void ask()}
      >
        Sign in with a passkey
      </Button>
    </>
  )
}

/** Null for what the browser did by itself: an offer that was not taken is no fault. */
function refusalOf(error: unknown): ApiError | null {
  return error instanceof ApiError && error.cause === undefined ? error : null
}
