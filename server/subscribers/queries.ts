import { type RawBuilder, type Selectable, sql } from 'kysely'
import pg from 'pg'
import type { Mode } from '../../contract/mode.ts'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import { afterAllIds, type FittingPage, idsWithin, selectFitting } from '../database/bounded-lists.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import type { Properties, SubscribersTable } from '../database/tables/people.ts'
import { addressKey } from '../message/address.ts'
import { deleteChoicesOf, hasLeftTopic } from '../topics/choices.ts'
import type { SubscriberState } from './change.ts'
import { searchPeople } from './search.ts'

export type SubscriberRow = Selectable<SubscribersTable>

/** The membership of a person in one audience. */
export type Membership = { audience_id: string; status: SubscriptionStatus }

export type NewSubscriber = {
  id: string
  accountId: string
  email: string
  firstName: string | null
  lastName: string | null
  properties: Properties
  at: Date
}

const insert = prepare<NewSubscriber & { emailKey: string }, Pick<SubscriberRow, 'status'>>({
  name: 'insert_subscriber',
})`
  INSERT INTO subscribers (id, account_id, email, email_key, first_name, last_name, properties, created_at, updated_at)
  VALUES (${'id'}, ${'accountId'}, ${'email'}, ${'emailKey'}, ${'firstName'}, ${'lastName'}, ${'properties'}, ${'at'}, ${'at'})
  ON CONFLICT (account_id, email_key) DO NOTHING
  RETURNING status
`

/**
 * Inserts a person. Returns undefined when the account already has the address. Waits for a transaction that is adding
 * it.
 */
export async function insertSubscriber(trx: Trx, subscriber: NewSubscriber): Promise<SubscriberRow | undefined> {
  const { id, accountId, email, firstName, lastName, properties, at } = subscriber
  const emailKey = addressKey(email)
  const [inserted] = await insert(trx, { ...subscriber, emailKey })
  if (inserted === undefined) return undefined
  return {
    id,
    account_id: accountId,
    email,
    email_key: emailKey,
    first_name: firstName,
    last_name: lastName,
    status: inserted.status,
    properties,
    created_at: at,
    updated_at: at,
  }
}

const select = prepare<{ accountId: string; id: string }, SubscriberRow>({ name: 'find_subscriber' })`
  SELECT id, account_id, email, email_key, first_name, last_name, status, properties, created_at, updated_at
  FROM subscribers WHERE account_id = ${'accountId'} AND id = ${'id'}
`

export async function findSubscriber(
  handle: Handle,
  accountId: string,
  id: string,
): Promise<SubscriberRow | undefined> {
  const [row] = await select(handle, { accountId, id })
  return row
}

/** Returns the person that a campaign wrote an email to. Undefined: it is of no campaign, or they or it are deleted. */
export async function findRecipientOfCampaign(
  handle: Handle,
  accountId: string,
  emailId: string,
): Promise<SubscriberRow | undefined> {
  // By the email alone, so that the planner has one index, and does not read through all recipients or people.
  const recipient = await handle
    .selectFrom('campaign_recipients')
    .select(['account_id', 'subscriber_id'])
    .where('email_id', '=', emailId)
    .executeTakeFirst()
  return recipient?.account_id === accountId ? findSubscriber(handle, accountId, recipient.subscriber_id) : undefined
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

/**
 * Returns people, newest first. With `status` it looks through 10,000 at most: see `selectFitting`. With `search` it
 * finds some of many: see `searchPeople`.
 *
 * @param page.after Id of the last row of the page before.
 */
export async function selectSubscribers(
  handle: Handle,
  accountId: string,
  page: PeoplePage,
): Promise<FittingPage<SubscriberRow>> {
  const { search, email, status, after } = page
  const filters = [sql`true`]
  if (email !== undefined) filters.push(sql`email_key = ${addressKey(email)}`)
  if (status !== undefined) filters.push(sql`status = ${status}`)
  return selectFitting<SubscriberRow>(handle, {
    rows: search === undefined ? newest(accountId, page) : found(accountId, search, after),
    fits: sql`${sql.join(filters, sql` AND `)}`,
    as: 'people',
    columns: sql`people.*`,
    limit: page.limit,
  })
}

export type PeoplePage = {
  search?: string | undefined
  email?: string | undefined
  status?: SubscriptionStatus | undefined
  after?: string | undefined
  limit: number
}

function newest(accountId: string, { email, status, after }: PeoplePage): RawBuilder<unknown> {
  if (email !== undefined) {
    return sql`SELECT * FROM subscribers WHERE account_id = ${accountId} AND email_key = ${addressKey(email)}
      AND id < ${after ?? afterAllIds} ORDER BY id DESC`
  }
  const bounds = [idsWithin(['account_id', 'id'], accountId, { below: [after] })]
  // They have an index of their own.
  if (status === 'unsubscribed') bounds.push(sql`status = 'unsubscribed'`)
  return sql`SELECT * FROM subscribers WHERE ${sql.join(bounds, sql` AND `)} ORDER BY account_id DESC, id DESC`
}

function found(accountId: string, search: string, after: string | undefined): RawBuilder<unknown> {
  return sql`
    SELECT s.* FROM (
      SELECT id FROM (${searchPeople(accountId, search)}) AS m
      WHERE ${after === undefined ? sql`true` : sql`id < ${after}`} ORDER BY id DESC
    ) AS m
    -- OFFSET 0 makes the planner look up each person by the primary key, whatever the statistics say.
    CROSS JOIN LATERAL (SELECT * FROM subscribers WHERE account_id = ${accountId} AND id = m.id OFFSET 0) AS s
    ORDER BY m.id DESC
  `
}

/** Updates a person. Returns `taken` when another person of the account has the address; the transaction then fails. */
export async function updateSubscriber(
  trx: Trx,
  id: string,
  { email, firstName, lastName, status, properties }: SubscriberState,
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
        properties: JSON.stringify(properties),
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

/** Returns true when a locked person has unsubscribed from everything, from an audience or from a topic. */
export async function hasUnsubscribed(
  trx: Trx,
  person: Pick<SubscriberRow, 'id' | 'account_id' | 'status'>,
): Promise<boolean> {
  if (person.status === 'unsubscribed') return true
  const row = await trx
    .selectFrom('contacts')
    .select('audience_id')
    .where('account_id', '=', person.account_id)
    .where('subscriber_id', '=', person.id)
    .where('status', '=', 'unsubscribed')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined || hasLeftTopic(trx, person.account_id, person.id)
}

/** Returns true when a locked person is active in an audience whose people confirm their address. */
export async function hasConfirmedContact(
  trx: Trx,
  { id, account_id }: Pick<SubscriberRow, 'id' | 'account_id'>,
): Promise<boolean> {
  const row = await trx
    .selectFrom('contacts')
    .innerJoin('audiences', (join) =>
      join.onRef('audiences.account_id', '=', 'contacts.account_id').onRef('audiences.id', '=', 'contacts.audience_id'),
    )
    .select('contacts.audience_id')
    .where('contacts.account_id', '=', account_id)
    .where('contacts.subscriber_id', '=', id)
    .where('contacts.status', '=', 'active')
    .where('audiences.double_opt_in', 'is not', null)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Deletes a locked person with what they chose. */
export async function deleteSubscriber(trx: Trx, accountId: string, id: string): Promise<void> {
  await deleteChoicesOf(trx, accountId, id)
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
    UPDATE contacts SET status = changed.status, updated_at = greatest(contacts.created_at, ${at})
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
