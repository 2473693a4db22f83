import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import type { Handle, Trx } from '../database/connection.ts'

/** What names a contact: a list and a person. */
export type ContactKey = { audienceId: string; subscriberId: string }

export type ContactRow = {
  audience_id: string
  subscriber_id: string
  email: string
  first_name: string | null
  last_name: string | null
  status: SubscriptionStatus
  created_at: Date
  updated_at: Date
}

/** Undefined when the person is on the list already; waits for a transaction that is adding them. */
export async function insertContact(
  trx: Trx,
  contact: ContactKey & { accountId: string; status: SubscriptionStatus; at: Date },
): Promise<{ created_at: Date; updated_at: Date } | undefined> {
  return trx
    .insertInto('contacts')
    .values({
      audience_id: contact.audienceId,
      subscriber_id: contact.subscriberId,
      account_id: contact.accountId,
      status: contact.status,
      created_at: contact.at,
      updated_at: contact.at,
    })
    .onConflict((conflict) => conflict.columns(['audience_id', 'subscriber_id']).doNothing())
    .returning(['created_at', 'updated_at'])
    .executeTakeFirst()
}

function contactsOf(handle: Handle, accountId: string, audienceId: string) {
  return handle
    .selectFrom('contacts')
    .innerJoin('subscribers', 'subscribers.id', 'contacts.subscriber_id')
    .select([
      'contacts.audience_id',
      'contacts.subscriber_id',
      'subscribers.email',
      'subscribers.first_name',
      'subscribers.last_name',
      'contacts.status',
      'contacts.created_at',
      'contacts.updated_at',
    ])
    .where('contacts.audience_id', '=', audienceId)
    .where('contacts.account_id', '=', accountId)
}

export async function findContact(
  handle: Handle,
  accountId: string,
  { audienceId, subscriberId }: ContactKey,
): Promise<ContactRow | undefined> {
  return contactsOf(handle, accountId, audienceId).where('contacts.subscriber_id', '=', subscriberId).executeTakeFirst()
}

/** @param page.after The subscriber the page begins behind, newest first. */
export async function selectContacts(
  handle: Handle,
  accountId: string,
  page: { audienceId: string; status?: SubscriptionStatus | undefined; after?: string | undefined; limit: number },
): Promise<ContactRow[]> {
  let query = contactsOf(handle, accountId, page.audienceId)
  if (page.status !== undefined) query = query.where('contacts.status', '=', page.status)
  if (page.after !== undefined) query = query.where('contacts.subscriber_id', '<', page.after)
  return query.orderBy('contacts.subscriber_id', 'desc').limit(page.limit).execute()
}

/** Answers whether the contact was there. */
export async function deleteContact(
  trx: Trx,
  accountId: string,
  { audienceId, subscriberId }: ContactKey,
): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('contacts')
    .where('audience_id', '=', audienceId)
    .where('subscriber_id', '=', subscriberId)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return numDeletedRows > 0n
}
