import { queryClient, sessionQuery } from '../../api/query-client.ts'
import type { Session } from '../../api/scope.tsx'

/** Keeps the session that was just started, and forgets what an earlier one has read. */
export function startSession(session: Session): void {
  queryClient.clear()
  queryClient.setQueryData(sessionQuery.queryKey, session)
}
