import { type Selectable, sql } from 'kysely'
import pg from 'pg'
import type { Mode } from '../../contract/mode.ts'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { SubscribersTable } from '../database/tables/people.ts'
import { addressKey } from '../message/address.ts'
import type { SubscriberState } from './change.ts'

export type SubscriberRow = Selectable<SubscribersTable>

/** One membership of a person. */
export type Membership = { audience_id: string; status: SubscriptionStatus }

export type NewSubscriber = {
  id: string
  accountId: string
  email: string
  firstName: string | null
  lastName: string | null
  at: Date
}

/** Undefined when the account has the address already; waits for a transaction that is adding it. */
export async function insertSubscriber(trx: Trx, subscriber: NewSubscriber): Promise<SubscriberRow | undefined> {
  return trx
    .insertInto('subscribers')
    .values({
      id: subscriber.id,
      account_id: subscriber.accountId,
      email: subscriber.email,
      email_key: addressKey(subscriber.email),
      first_name: subscriber.firstName,
      last_name: subscriber.lastName,
      created_at: subscriber.at,
      updated_at: subscriber.at,
    })
    .onConflict((conflict) => conflict.columns(['account_id', 'email_key']).doNothing())
    .returningAll()
    .executeTakeFirst()
}

export async function findSubscriber(
  handle: Handle,
  accountId: string,
  id: string,
): Promise<SubscriberRow | undefined> {
  return handle
    .selectFrom('subscribers')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .executeTakeFirst()
}

/** Finds a person that this transaction is about to change or to delete. */
export async function lockSubscriber(
  trx: Trx,
  accountId: string,
  id: string,
  purpose: 'change' | 'delete',
): Promise<SubscriberRow | undefined> {
  const query = trx.selectFrom('subscribers').selectAll().where('account_id', '=', accountId).where('id', '=', id)
  return (purpose === 'delete' ? query.forUpdate() : query.forNoKeyUpdate()).executeTakeFirst()
}

/** @param after The row the page begins behind, newest first. */
export async function selectSubscribers(
  handle: Handle,
  accountId: string,
  page: {
    email?: string | undefined
    status?: SubscriptionStatus | undefined
    after?: string | undefined
    limit: number
  },
): Promise<SubscriberRow[]> {
  let query = handle.selectFrom('subscribers').selectAll().where('account_id', '=', accountId)
  if (page.email !== undefined) query = query.where('email_key', '=', addressKey(page.email))
  if (page.status !== undefined) query = query.where('status', '=', page.status)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

/** Answers `taken` when another person of the account has the address; the transaction is then lost. */
export async function updateSubscriber(
  trx: Trx,
  id: string,
  { email, firstName, lastName, status }: SubscriberState,
  at: Date,
): Promise<SubscriberRow | 'taken'> {
  try {
    return await trx
      .updateTable('subscribers')
      .set({
        email,
        email_key: addressKey(email),
        first_name: firstName,
        last_name: lastName,
        status,
        updated_at: at,
      })
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirstOrThrow()
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === uniqueViolation) return 'taken'
    throw error
  }
}

/** Whether a locked person unsubscribed from everything or from an audience. */
export async function hasUnsubscribed(trx: Trx, person: Pick<SubscriberRow, 'id' | 'status'>): Promise<boolean> {
  if (person.status === 'unsubscribed') return true
  const row = await trx
    .selectFrom('contacts')
    .select('audience_id')
    .where('subscriber_id', '=', person.id)
    .where('status', '=', 'unsubscribed')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

export async function deleteSubscriber(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('subscribers').where('id', '=', id).execute()
}

/**
 * Locks the next memberships of a person, in the order of their audiences. Everything that locks
 * several contacts does so by audience, then by subscriber, so that no two ever wait for each other.
 *
 * @param page.after The audience the page begins behind; empty at the start.
 * @param page.only Just the one in this audience.
 */
export async function lockMemberships(
  trx: Trx,
  subscriberId: string,
  page: { after: string; only?: string | undefined; limit: number; purpose: 'change' | 'delete' },
): Promise<Membership[]> {
  let query = trx
    .selectFrom('contacts')
    .select(['audience_id', 'status'])
    .where('subscriber_id', '=', subscriberId)
    .where('audience_id', '>', page.after)
  if (page.only !== undefined) query = query.where('audience_id', '=', page.only)
  query = query.orderBy('audience_id').limit(page.limit)
  return (page.purpose === 'delete' ? query.forUpdate() : query.forNoKeyUpdate()).execute()
}

/** Writes memberships of a person that are locked. */
export async function updateMemberships(
  trx: Trx,
  subscriberId: string,
  memberships: readonly Membership[],
  at: Date,
): Promise<void> {
  await sql`
    UPDATE contacts SET status = changed.status, updated_at = ${at}
    FROM unnest(
      ${memberships.map(({ audience_id }) => audience_id)}::text[],
      ${memberships.map(({ status }) => status)}::text[]
    ) AS changed (audience_id, status)
    WHERE contacts.subscriber_id = ${subscriberId} AND contacts.audience_id = changed.audience_id
  `.execute(trx)
}

export async function deleteMemberships(trx: Trx, subscriberId: string, audienceIds: readonly string[]): Promise<void> {
  await trx
    .deleteFrom('contacts')
    .where('subscriber_id', '=', subscriberId)
    .where('audience_id', '=', sql<string>`ANY(${audienceIds}::text[])`)
    .execute()
}

const uniqueViolation = '23505'

/** The mode of an email; undefined: it is gone. */
export async function findModeOfEmail(trx: Trx, accountId: string, emailId: string): Promise<Mode | undefined> {
  const row = await trx
    .selectFrom('emails')
    .select('mode')
    .where('account_id', '=', accountId)
    .where('id', '=', emailId)
    .executeTakeFirst()
  return row?.mode
}
