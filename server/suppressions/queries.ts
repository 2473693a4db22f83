import type { Selectable } from 'kysely'
import type { SuppressionReason } from '../../contract/suppressions.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import type { SuppressionsTable } from '../database/tables/emails.ts'

export type SuppressionRow = Selectable<SuppressionsTable>

/**
 * Puts an address on the list by hand. One that is there because its owner unsubscribed is there by hand
 * from then on. Undefined when it is there for another reason.
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
      email_id: null,
      created_at: at,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['account_id', 'address_key'])
        .doUpdateSet({ reason: 'manual', email_id: null })
        .where('suppressions.reason', '=', 'unsubscribe'),
    )
    .returningAll()
    .executeTakeFirst()
}

/** Puts the address of somebody who unsubscribed on the list, unless it is there. False: there is no such account. */
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
      email_id: emailId,
      created_at: at,
    })
    .onConflict((conflict) => conflict.columns(['account_id', 'address_key']).doNothing())
    .execute()
  return true
}

export type NewSuppression = { id: string; accountId: string; address: string; addressKey: string; at: Date }

/** @param page.before The entry the page begins behind, newest first. */
export async function selectSuppressions(
  handle: Handle,
  accountId: string,
  page: {
    reason: SuppressionReason | undefined
    addressKey: string | undefined
    before: string | undefined
    limit: number
  },
): Promise<SuppressionRow[]> {
  let query = handle.selectFrom('suppressions').selectAll().where('account_id', '=', accountId)
  if (page.reason !== undefined) query = query.where('reason', '=', page.reason)
  if (page.addressKey !== undefined) query = query.where('address_key', '=', page.addressKey)
  if (page.before !== undefined) query = query.where('id', '<', page.before)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

type Found = Pick<SuppressionRow, 'address_key' | 'reason' | 'created_at'>

const selectFound = prepare<{ accountId: string; addressKeys: readonly string[] }, Found>({
  name: 'find_suppressions',
})`
  SELECT address_key, reason, created_at FROM suppressions
  WHERE account_id = ${'accountId'} AND address_key = ANY(${'addressKeys'}::text[])
`

/** What is known of these addresses, those of them that are on the list. */
export function findSuppressions(handle: Handle, accountId: string, addressKeys: readonly string[]): Promise<Found[]> {
  return selectFound(handle, { accountId, addressKeys })
}

export async function deleteSuppression(handle: Handle, accountId: string, addressKey: string): Promise<boolean> {
  const { numDeletedRows } = await handle
    .deleteFrom('suppressions')
    .where('account_id', '=', accountId)
    .where('address_key', '=', addressKey)
    .executeTakeFirst()
  return numDeletedRows > 0n
}
