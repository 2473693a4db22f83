import { notifications } from '@mantine/notifications'
import { useNavigate } from '@tanstack/react-router'
import { ApiError } from '../api/client.ts'
import { callForUser, isSignedOut, queryClient } from '../api/query-client.ts'

const noticeId = 'still-signed-in'

/**
 * Returns a function that ends the session and forgets all that was read in it. Where it could not be ended, it says so
 * and stays.
 */
export function useSignOut(): () => Promise<void> {
  const navigate = useNavigate()
  return async () => {
    notifications.hide(noticeId)
    try {
      await callForUser('DELETE /v1/session', {})
    } catch (error) {
      // It may have ended already.
      if (!isSignedOut(error)) {
        const message = error instanceof ApiError ? error.message : String(error)
        notifications.show({ id: noticeId, title: 'You are still signed in', message, color: 'red', autoClose: false })
        return
      }
    }
    queryClient.clear()
    await navigate({ to: '/sign-in', search: {} })
  }
}
