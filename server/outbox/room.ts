import type { Handle } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'

/** Events that may wait for the fan-out before work in bulk adds more: less than it takes in a second. */
const maxWaiting = 2_000

const countWaiting = prepare<{ limit: number }, { count: number }>({ name: 'count_waiting_events' })`
  SELECT count(*)::int AS count FROM (
    SELECT FROM outbox_rows WHERE lease IS NULL ORDER BY event_id LIMIT ${'limit'}
  ) AS waiting
`

/**
 * Returns true while few events of all accounts wait for the fan-out. Call it before appending many events that can
 * wait, so that the outbox stays short. Counts 2,000 rows at most.
 */
export async function outboxHasRoom(handle: Handle): Promise<boolean> {
  const [row] = await countWaiting(handle, { limit: maxWaiting })
  return (row?.count ?? 0) < maxWaiting
}
