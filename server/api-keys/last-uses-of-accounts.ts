import { sql } from 'kysely'
import type { Handle } from '../database/connection.ts'

/** Keys of an account that are looked at: the newest. */
const mostKeys = 1_000

/** Returns when keys of these accounts were last used. An account whose keys never were is left out. */
export async function lastUsesOfAccounts(handle: Handle, accountIds: readonly string[]): Promise<Map<string, Date>> {
  const { rows } = await sql<{ id: string; last_used_at: Date | null }>`
    SELECT a.id, k.last_used_at FROM unnest(${accountIds}::text[]) AS a (id)
    CROSS JOIN LATERAL (
      SELECT max(last_used_at) AS last_used_at FROM (
        SELECT last_used_at FROM api_keys
        WHERE account_id = a.id ORDER BY account_id DESC, id DESC LIMIT ${mostKeys}
      ) AS newest
    ) AS k
  `.execute(handle)
  return new Map(rows.flatMap(({ id, last_used_at }) => (last_used_at === null ? [] : [[id, last_used_at]])))
}
