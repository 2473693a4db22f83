import { type Selectable, sql } from 'kysely'
import pg from 'pg'
import type { Mode } from '../../contract/mode.ts'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { SubscribersTable } from '../database/tables/people.ts'
import { addressKey } from '../message/address.ts'
import type { SubscriberState } from './change.ts'

export type SubscriberRow = Selectable<SubscribersTable>

/** The membership of a person in one audience. */
export type Membership = { audience_id: string; status: SubscriptionStatus }

export type NewSubscriber = {
  id: string
  accountId: string
  email: string
  firstName: string | null
  lastName: string | null
  at: Date
}

/**
 * Inserts a person. Returns undefined when the account already has the address. Waits for a transaction that is adding
 * it.
 */
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

/** Locks a person for a change or a deletion. */
export async function lockSubscriber(
  trx: Trx,
  accountId: string,
  id: string,
  purpose: 'change' | 'delete',
): Promise<SubscriberRow | undefined> {
  const query = trx.selectFrom('subscribers').selectAll().where('account_id', '=', accountId).where('id', '=', id)
  return (purpose === 'delete' ? query.forUpdate() : query.forNoKeyUpdate()).executeTakeFirst()
}

/** @param page.after Id of the last row of the page before. Newest first. */
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

/** Updates a person. Returns `taken` when another person of the account has the address; the transaction then fails. */
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

/** Returns true when a locked person has unsubscribed from everything or from an audience. */
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
 * Locks the next memberships of a person, ordered by audience. All code that locks several contacts does so by
 * audience, then by subscriber, which prevents deadlocks.
 *
 * @param page.after Audience of the last membership of the page before; empty for the first page.
 * @param page.only Id of the only audience to lock.
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

/** Updates locked memberships of a person. */
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

/** Returns the mode of an email, or undefined when it was deleted. */
export async function findModeOfEmail(trx: Trx, accountId: string, emailId: string): Promise<Mode | undefined> {
  const row = await trx
    .selectFrom('emails')
    .select('mode')
    .where('account_id', '=', accountId)
    .where('id', '=', emailId)
    .executeTakeFirst()
  return row?.mode
}
