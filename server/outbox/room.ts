import type { Handle } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'

/** Events of an account that may wait for the fan-out before work in bulk adds more: less than it takes in a second. */
const maxWaiting = 4_000

const countWaiting = prepare<{ accountId: string; limit: number }, { count: number }>({ name: 'count_waiting_events' })`
  SELECT count(*)::int AS count FROM (
    -- In these words only the index by kind has the order, whatever the statistics say.
    SELECT FROM outbox_rows
    WHERE (account_id, mode, type, event_id) > (${'accountId'}, '', '', '') AND account_id <= ${'accountId'}
      AND lease IS NULL
    ORDER BY account_id, mode, type, event_id LIMIT ${'limit'}
  ) AS waiting
`

/**
 * Returns true while few events of the account wait for the fan-out. Call it before appending many events that can
 * wait, so that the outbox stays short. Those of other accounts do not count: the fan-out takes events of each account
 * in turn. Counts 4,000 rows at most.
 */
export async function outboxHasRoom(handle: Handle, accountId: string): Promise<boolean> {
  const [row] = await countWaiting(handle, { accountId, limit: maxWaiting })
  return (row?.count ?? 0) < maxWaiting
}
