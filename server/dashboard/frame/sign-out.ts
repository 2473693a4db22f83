import { useNavigate } from '@tanstack/react-router'
import { callForUser, queryClient } from '../api/query-client.ts'

/** Returns a function that ends the session and forgets all that was read in it. */
export function useSignOut(): () => Promise<void> {
  const navigate = useNavigate()
  return async () => {
    // It may have ended already.
    await callForUser('DELETE /v1/session', {}).catch(() => undefined)
    queryClient.clear()
    await navigate({ to: '/sign-in', search: {} })
  }
}
