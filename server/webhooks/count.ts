import { sql } from 'kysely'
import { countUpTo } from '../database/bounded-lists.ts'
import type { Handle } from '../database/connection.ts'

/** Returns the number of webhooks of an account, over both modes: `most` at most. */
export function countWebhooks(handle: Handle, accountId: string, most: number): Promise<number> {
  return countUpTo(handle, sql`SELECT FROM webhooks WHERE account_id = ${accountId} ORDER BY id`, most)
}
