import type { Trx } from '../database/connection.ts'
import { addressKey } from '../message/address.ts'
import { newId } from '../shared/ids.ts'
import { deleteUnsubscribed, insertUnsubscribed } from './queries.ts'

/**
 * Has emails to an audience go to an address again whose owner had unsubscribed by a link. What it is on the
 * suppression list for besides stays. Returns whether there was anything to take back.
 */
export async function removeUnsubscribe(trx: Trx, accountId: string, address: string): Promise<boolean> {
  return deleteUnsubscribed(trx, accountId, addressKey(address))
}

/**
 * Keeps emails to an audience from an address whose owner unsubscribed by the link of an email. Returns false when the
 * account is gone.
 */
export async function suppressUnsubscribed(
  trx: Trx,
  { accountId, address, emailId, at }: { accountId: string; address: string; emailId: string; at: Date },
): Promise<boolean> {
  const id = newId('suppression', at)
  return insertUnsubscribed(trx, { id, accountId, address, addressKey: addressKey(address), at, emailId })
}
