import { sql } from 'kysely'
import { plainArray, textArrays } from '../database/arrays.ts'
import type { Trx } from '../database/connection.ts'
import { newId } from '../shared/ids.ts'
import { findSuppressions } from './queries.ts'

/** An address that another service has not written to any more. */
export type ImportedSuppression = { address: string; addressKey: string; reason: 'unsubscribe' | 'hard_bounce' }

/**
 * Adds addresses to the list, as they were known elsewhere. What is on the list stays, and learns what is new: that its
 * owner unsubscribed, or that an address whose owner unsubscribed does not exist.
 */
export async function suppressImported(
  trx: Trx,
  { accountId, entries, at }: { accountId: string; entries: readonly ImportedSuppression[]; at: Date },
): Promise<void> {
  for (const reason of ['unsubscribe', 'hard_bounce'] as const) {
    const own = new Map(entries.filter((entry) => entry.reason === reason).map((entry) => [entry.addressKey, entry]))
    if (own.size === 0) continue
    const { addresses, keys } = await textArrays({
      addresses: [...own.values()].map(({ address }) => address),
      keys: [...own.keys()],
    })
    const ids = plainArray([...own].map(() => newId('suppression', at)))
    const learns =
      reason === 'unsubscribe'
        ? sql`unsubscribed_at = ${at}::timestamptz
            WHERE suppressions.reason <> 'unsubscribe' AND suppressions.unsubscribed_at IS NULL`
        : sql`reason = 'hard_bounce', source = 'api', email_id = NULL, unsubscribed_at = suppressions.created_at,
            unsubscribe_email_id = suppressions.email_id WHERE suppressions.reason = 'unsubscribe'`
    await sql`
      INSERT INTO suppressions (id, account_id, address, address_key, reason, source, email_id, created_at)
      SELECT id, ${accountId}, address, address_key, ${reason}, 'api', NULL, ${at}::timestamptz
      FROM unnest(${ids}::text[], ${addresses}::text[], ${keys}::text[]) AS s (id, address, address_key)
      -- In one order, which prevents deadlocks.
      ORDER BY address_key COLLATE "C"
      ON CONFLICT (account_id, address_key) DO UPDATE SET ${learns}
    `.execute(trx)
  }
}

/** Returns which of these addresses are on the list, as `addressKey` makes them, for any reason. */
export async function suppressedAmong(trx: Trx, accountId: string, addressKeys: readonly string[]): Promise<string[]> {
  const found = await findSuppressions(trx, accountId, addressKeys)
  return found.map(({ address_key }) => address_key)
}
