import { QueryClient, queryOptions } from '@tanstack/react-query'
import { ApiError, createClient } from './client.ts'

const attempts = 3

/** Calls the API outside of an account: signing in, the session, its user. */
export const callForUser = createClient(null)

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // A 4xx error is not retried: the API would refuse the request again.
      retry: (failures, error) => failures < attempts - 1 && isTemporary(error),
      staleTime: 5_000,
    },
  },
})

function isTemporary(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500)
}

/** The signed-in user and their accounts. Fails with 401 without a session. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: () => callForUser('GET /v1/session', {}),
  staleTime: 60_000,
})

/** Returns whether the API refused a request because there is no session any more. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401
}

/** Reads the session again after a 401: it may have ended. */
export function checkSession(error: unknown): void {
  if (isSignedOut(error)) void queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey })
}
