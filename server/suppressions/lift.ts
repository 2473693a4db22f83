import type { Trx } from '../database/connection.ts'
import { addressKey } from '../message/address.ts'
import { deleteUnsubscribed } from './queries.ts'

/**
 * Has emails to an audience go to an address again whose owner had unsubscribed by a link. What it is on the
 * suppression list for besides stays. Returns whether there was anything to take back.
 */
export async function liftUnsubscribe(trx: Trx, accountId: string, address: string): Promise<boolean> {
  return deleteUnsubscribed(trx, accountId, addressKey(address))
}
