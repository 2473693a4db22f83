import type { Handle } from '../database/connection.ts'
import type { UnsubscribeRef } from '../message/mail-tokens.ts'
import { findRecipientOfCampaign, type SubscriberRow, selectSubscribers } from './queries.ts'

/**
 * Returns the person that an unsubscribe link belongs to: who has its address or, where no subscriber has it any more,
 * whom the campaign wrote to with the email of the link, and who has another address by now. Undefined: there is none.
 */
export async function findPersonOfLink(
  handle: Handle,
  { accountId, address, emailId }: Pick<UnsubscribeRef, 'accountId' | 'address' | 'emailId'>,
): Promise<SubscriberRow | undefined> {
  const { rows } = await selectSubscribers(handle, accountId, { email: address, limit: 1 })
  return rows[0] ?? findRecipientOfCampaign(handle, accountId, emailId)
}
