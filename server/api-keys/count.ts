import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import { countUpTo } from '../database/bounded-lists.ts'
import type { Handle } from '../database/connection.ts'

/** Returns the number of keys of one mode among the first `most` keys of an account. */
export function countKeysOf(
  handle: Handle,
  { accountId, mode }: { accountId: string; mode: Mode },
  most: number,
): Promise<number> {
  const first = sql`SELECT mode FROM api_keys WHERE account_id = ${accountId} ORDER BY id LIMIT ${most}`
  return countUpTo(handle, sql`SELECT FROM (${first}) AS k WHERE mode = ${mode}`, most)
}
