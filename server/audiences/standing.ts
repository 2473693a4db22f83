import type { PersonStatus, SubscriptionStatus } from '../../contract/subscribers.ts'
import type { Handle } from '../database/connection.ts'
import type { ContactKey } from './contact-queries.ts'

/** Where a person stands in an audience. */
export type ContactStanding = {
  status: SubscriptionStatus
  personStatus: PersonStatus
  /** The `addressKey` of the address that the person has now. */
  emailKey: string
  audienceName: string
}

/** Returns where a person stands in an audience. Undefined: there is no such contact. */
export async function findStanding(
  handle: Handle,
  accountId: string,
  { audienceId, subscriberId }: ContactKey,
): Promise<ContactStanding | undefined> {
  return handle
    .selectFrom('contacts')
    .innerJoin('subscribers', 'subscribers.id', 'contacts.subscriber_id')
    .innerJoin('audiences', 'audiences.id', 'contacts.audience_id')
    .select([
      'contacts.status',
      'subscribers.status as personStatus',
      'subscribers.email_key as emailKey',
      'audiences.name as audienceName',
    ])
    .where('contacts.audience_id', '=', audienceId)
    .where('contacts.subscriber_id', '=', subscriberId)
    .where('contacts.account_id', '=', accountId)
    .executeTakeFirst()
}
