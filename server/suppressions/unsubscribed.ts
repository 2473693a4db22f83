import type { Trx } from '../database/connection.ts'
import { addressKey } from '../message/address.ts'
import { newId } from '../shared/ids.ts'
import { deleteUnsubscribed, insertUnsubscribed } from './queries.ts'

/**
 * Removes an unsubscription by link, so that an address gets emails to audiences again. Another reason on the
 * suppression list stays. Returns the id of the entry. Null: there was no unsubscription.
 */
export async function removeUnsubscribe(trx: Trx, accountId: string, address: string): Promise<string | null> {
  return deleteUnsubscribed(trx, accountId, addressKey(address))
}

/**
 * Adds an address whose owner unsubscribed by the link of an email to the suppression list, so that it gets no more
 * emails to audiences. Returns false when the account no longer exists.
 */
export async function suppressUnsubscribed(
  trx: Trx,
  { accountId, address, emailId, at }: { accountId: string; address: string; emailId: string; at: Date },
): Promise<boolean> {
  const id = newId('suppression', at)
  return insertUnsubscribed(trx, { id, accountId, address, addressKey: addressKey(address), at, emailId })
}
