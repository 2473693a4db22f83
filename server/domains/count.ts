import { sql } from 'kysely'
import { countUpTo } from '../database/bounded-lists.ts'
import type { Handle } from '../database/connection.ts'

/** Returns the number of domains of an account: `most` at most. */
export function countDomainsOf(handle: Handle, accountId: string, most: number): Promise<number> {
  return countUpTo(handle, sql`SELECT FROM domains WHERE account_id = ${accountId}`, most)
}
