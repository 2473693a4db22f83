import { notifications } from '@mantine/notifications'
import { useQuery } from '@tanstack/react-query'
import { useRouter } from '@tanstack/react-router'
import { useEffect } from 'react'
import { isSignedOut, sessionQuery } from '../api/query-client.ts'
import type { Session } from '../api/scope.tsx'

/** Milliseconds to the next try while the session cannot be read. */
const retryMs = 10_000
const noticeId = 'session-not-read'

/**
 * Returns the session, or leads to the form to sign in once it has ended. While it cannot be read for another reason, the
 * one that was read last stays, and a notice says so. Undefined: not read yet.
 */
export function useSession(): Session | undefined {
  const { data: session, error } = useQuery({
    ...sessionQuery,
    refetchInterval: ({ state }) => (state.error === null || isSignedOut(state.error) ? false : retryMs),
  })
  const router = useRouter()
  const hasEnded = error !== null && isSignedOut(error)
  useEffect(() => {
    if (hasEnded) void router.navigate({ to: '/sign-in', search: { next: router.state.location.href } })
  }, [hasEnded, router])

  const isUnread = error !== null && !hasEnded
  useEffect(() => {
    if (!isUnread) return
    notifications.show({
      id: noticeId,
      message:
        'Your session cannot be read at the moment. What is shown may be old. It is read again every 10 seconds.',
      color: 'gray',
      autoClose: false,
      role: 'status',
    })
    return () => void notifications.hide(noticeId)
  }, [isUnread])
  return session
}
