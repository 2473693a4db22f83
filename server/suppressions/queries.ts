import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { SuppressionReason } from '../../contract/suppressions.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { beginsWith } from '../database/prefixes.ts'
import { prepare } from '../database/prepared.ts'
import type { SuppressionsTable } from '../database/tables/emails.ts'

export type SuppressionRow = Selectable<SuppressionsTable>

/**
 * Adds an address to the list with the reason `manual`. An entry with the reason `unsubscribe` becomes `manual` and
 * keeps the unsubscription. Returns undefined when the address is on the list for another reason.
 */
export async function insertSuppression(
  trx: Trx,
  { id, accountId, address, addressKey, at }: NewSuppression,
): Promise<SuppressionRow | undefined> {
  return trx
    .insertInto('suppressions')
    .values({
      id,
      account_id: accountId,
      address,
      address_key: addressKey,
      reason: 'manual',
      source: 'api',
      email_id: null,
      created_at: at,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['account_id', 'address_key'])
        .doUpdateSet({
          reason: 'manual',
          source: 'api',
          email_id: null,
          unsubscribed_at: sql.ref('suppressions.created_at'),
          unsubscribe_email_id: sql.ref('suppressions.email_id'),
        })
        .where('suppressions.reason', '=', 'unsubscribe'),
    )
    .returningAll()
    .executeTakeFirst()
}

/**
 * Adds the address of a person who unsubscribed to the list. An entry with another reason keeps it, and also stores the
 * unsubscription. A second call changes nothing. Returns false when there is no such account.
 */
export async function insertUnsubscribed(
  trx: Trx,
  { id, accountId, address, addressKey, at, emailId }: NewSuppression & { emailId: string },
): Promise<boolean> {
  const account = await trx.selectFrom('accounts').select('id').where('id', '=', accountId).executeTakeFirst()
  if (account === undefined) return false
  await trx
    .insertInto('suppressions')
    .values({
      id,
      account_id: accountId,
      address,
      address_key: addressKey,
      reason: 'unsubscribe',
      source: 'unsubscribe_link',
      email_id: emailId,
      created_at: at,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['account_id', 'address_key'])
        .doUpdateSet({ unsubscribed_at: at, unsubscribe_email_id: emailId })
        .where('suppressions.reason', '<>', 'unsubscribe')
        .where('suppressions.unsubscribed_at', 'is', null),
    )
    .execute()
  return true
}

export type NewSuppression = { id: string; accountId: string; address: string; addressKey: string; at: Date }

/** Most entries that a search looks at for each form of its address. */
const maxMatches = 500

/**
 * Returns entries, newest first. Of more than 500 entries whose address begins with `prefixes`, it finds the first 500 by
 * alphabet.
 *
 * @param page.before Id of the last entry of the page before.
 */
export async function selectSuppressions(
  handle: Handle,
  accountId: string,
  { reason, addressKey, prefixes, before, limit }: SuppressionPage,
): Promise<SuppressionRow[]> {
  let query = handle.selectFrom('suppressions').selectAll().where('account_id', '=', accountId)
  if (reason !== undefined) query = query.where('reason', '=', reason)
  if (addressKey !== undefined) query = query.where('address_key', '=', addressKey)
  if (prefixes !== undefined) query = query.where(isAmongMatches(accountId, prefixes))
  if (before !== undefined) query = query.where('id', '<', before)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

function isAmongMatches(accountId: string, prefixes: readonly string[]): RawBuilder<boolean> {
  const matches = prefixes.map(
    (prefix) => sql`(
      SELECT id FROM suppressions WHERE ${beginsWith(sql`address_key`, accountId, sql`${prefix}::text`)}
      ORDER BY account_id, address_key LIMIT (SELECT ${maxMatches}::bigint)
    )`,
  )
  return sql`id = ANY(ARRAY(${sql.join(matches, sql` UNION `)}))`
}

export type SuppressionPage = {
  reason?: SuppressionReason | undefined
  addressKey?: string | undefined
  prefixes?: readonly string[] | undefined
  before?: string | undefined
  limit: number
}

type Found = Pick<SuppressionRow, 'address_key' | 'reason' | 'created_at'>

const selectFound = prepare<{ accountId: string; addressKeys: readonly string[] }, Found>({
  name: 'find_suppressions',
})`
  SELECT address_key, reason, created_at FROM suppressions
  WHERE account_id = ${'accountId'} AND address_key = ANY(${'addressKeys'}::text[])
`

/** Returns the entries of these addresses that are on the list. */
export function findSuppressions(handle: Handle, accountId: string, addressKeys: readonly string[]): Promise<Found[]> {
  return selectFound(handle, { accountId, addressKeys })
}

/**
 * Removes the shown reason of an address. If its owner has also unsubscribed, the entry stays with the reason
 * `unsubscribe`; otherwise it is deleted. Returns the entry as it was. Undefined: the address is not on the list.
 */
export async function deleteSuppression(
  trx: Trx,
  accountId: string,
  addressKey: string,
): Promise<Pick<SuppressionRow, 'id' | 'reason'> | undefined> {
  const before = await trx
    .selectFrom('suppressions')
    .select(['id', 'reason', 'unsubscribed_at'])
    .where('account_id', '=', accountId)
    .where('address_key', '=', addressKey)
    .forUpdate()
    .executeTakeFirst()
  if (before === undefined) return undefined
  const entry = { accountId, addressKey }
  await (before.unsubscribed_at === null ? deleteEntry(trx, entry) : keepUnsubscription(trx, entry))
  return before
}

async function keepUnsubscription(trx: Trx, { accountId, addressKey }: EntryKey): Promise<void> {
  await trx
    .updateTable('suppressions')
    .set(({ ref }) => ({
      reason: 'unsubscribe',
      source: 'unsubscribe_link',
      email_id: ref('unsubscribe_email_id'),
      created_at: ref('unsubscribed_at').$notNull(),
      unsubscribed_at: null,
      unsubscribe_email_id: null,
    }))
    .where('account_id', '=', accountId)
    .where('address_key', '=', addressKey)
    .execute()
}

async function deleteEntry(trx: Trx, { accountId, addressKey }: EntryKey): Promise<void> {
  await trx
    .deleteFrom('suppressions')
    .where('account_id', '=', accountId)
    .where('address_key', '=', addressKey)
    .execute()
}

type EntryKey = { accountId: string; addressKey: string }

/**
 * Deletes the unsubscription of an address. Another reason on the list stays. Returns the id of the entry. Null: there
 * was no unsubscription.
 */
export async function deleteUnsubscribed(trx: Trx, accountId: string, addressKey: string): Promise<string | null> {
  const deleted = await trx
    .deleteFrom('suppressions')
    .where('account_id', '=', accountId)
    .where('address_key', '=', addressKey)
    .where('reason', '=', 'unsubscribe')
    .returning('id')
    .executeTakeFirst()
  const updated = await trx
    .updateTable('suppressions')
    .set({ unsubscribed_at: null, unsubscribe_email_id: null })
    .where('account_id', '=', accountId)
    .where('address_key', '=', addressKey)
    .where('unsubscribed_at', 'is not', null)
    .returning('id')
    .executeTakeFirst()
  return (deleted ?? updated)?.id ?? null
}
