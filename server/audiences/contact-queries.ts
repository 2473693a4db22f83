import { type RawBuilder, sql } from 'kysely'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import { type FittingPage, idsWithin, selectFitting } from '../database/bounded-lists.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import type { DoubleOptIn, Properties } from '../database/tables/people.ts'
import { addressKey } from '../message/address.ts'
import type { Person } from '../subscribers/people.ts'
import { searchPeople } from '../subscribers/search.ts'
import type { AskedBefore } from './confirmation.ts'

/** Identifies a contact: an audience and a person. */
export type ContactKey = { audienceId: string; subscriberId: string }

export type ContactRow = {
  audience_id: string
  subscriber_id: string
  email: string
  first_name: string | null
  last_name: string | null
  status: SubscriptionStatus
  properties: Properties
  confirmation_sent_at: Date | null
  created_at: Date
  updated_at: Date
}

export type NewContact = {
  accountId: string
  audienceId: string
  /** The identifier for the person, used if they are new. */
  subscriberId: string
  email: string
  firstName: string | null
  lastName: string | null
  /** The values of a new person. */
  properties: Properties
  /** When a new person was created. */
  at: Date
}

/** The result of adding a contact. Only the outcome `added` has written anything. */
export type ContactAddition =
  | {
      outcome: 'added'
      person: ContactPerson
      isNewPerson: boolean
      /** Of the contact. */
      status: SubscriptionStatus
      createdAt: Date
      audience: { name: string; doubleOptIn: DoubleOptIn | null }
    }
  | { outcome: 'no audience' }
  | { outcome: 'on the list already'; person: ContactPerson }

export type ContactPerson = Pick<Person, 'id' | 'email' | 'first_name' | 'last_name' | 'status' | 'properties'>

type AddedRow = ContactPerson & {
  is_new: boolean
  contact_status: SubscriptionStatus | null
  contact_created_at: Date | null
}
type AdditionRow = { audience_name: string; double_opt_in: DoubleOptIn | null } & (AddedRow | { id: null })

type InsertedContact = Omit<NewContact, 'properties'> & { emailKey: string; properties: string }

const insertPersonAndContact = prepare<InsertedContact, AdditionRow>({ name: 'insert_contact' })`
  WITH audience AS (
    SELECT id, name, double_opt_in FROM audiences WHERE account_id = ${'accountId'} AND id = ${'audienceId'} FOR KEY SHARE
  ), new_person AS (
    INSERT INTO subscribers (id, account_id, email, email_key, first_name, last_name, properties, created_at,
      updated_at)
    SELECT ${'subscriberId'}, ${'accountId'}, ${'email'}, ${'emailKey'}, ${'firstName'}, ${'lastName'},
      ${'properties'}::jsonb, ${'at'}::timestamptz, ${'at'}::timestamptz
    FROM audience
    ON CONFLICT (account_id, email_key) DO NOTHING
    RETURNING id, email, first_name, last_name, status, properties
  ), known_person AS (
    SELECT id, email, first_name, last_name, status, properties FROM subscribers
    WHERE account_id = ${'accountId'} AND email_key = ${'emailKey'} AND NOT EXISTS (SELECT FROM new_person)
    FOR SHARE
  ), person AS (
    SELECT *, true AS is_new FROM new_person UNION ALL SELECT *, false FROM known_person
  ), contact AS (
    INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
    SELECT audience.id, person.id, ${'accountId'},
      CASE WHEN person.status = 'active' AND audience.double_opt_in IS NOT NULL THEN 'pending' ELSE person.status END,
      -- PostgreSQL's time: a campaign compares it with when its list was begun, whichever processes did both.
      date_trunc('milliseconds', pgboss.job_now()), date_trunc('milliseconds', pgboss.job_now())
    FROM audience, person
    ON CONFLICT (audience_id, subscriber_id) DO NOTHING
    RETURNING status, created_at
  )
  SELECT person.*, audience.name AS audience_name, audience.double_opt_in,
    (SELECT status FROM contact) AS contact_status, (SELECT created_at FROM contact) AS contact_created_at
  FROM audience LEFT JOIN person ON true
`

/**
 * Adds the person with an address to an audience. Creates the person if they do not exist; names and properties of an
 * existing person stay unchanged. Locks the audience and the person until the transaction ends.
 */
export async function addContact(trx: Trx, contact: NewContact): Promise<ContactAddition> {
  const params = {
    ...contact,
    emailKey: addressKey(contact.email),
    properties: JSON.stringify(contact.properties),
  }
  for (;;) {
    const [row] = await insertPersonAndContact(trx, params)
    if (row === undefined) return { outcome: 'no audience' }
    if (row.id !== null) {
      const {
        is_new: isNewPerson,
        contact_status: status,
        contact_created_at: createdAt,
        audience_name: name,
        double_opt_in: doubleOptIn,
        ...person
      } = row
      if (status === null || createdAt === null) return { outcome: 'on the list already', person }
      return { outcome: 'added', person, isNewPerson, status, createdAt, audience: { name, doubleOptIn } }
    }
    // Another transaction has added the person since the statement started: the next statement sees them.
  }
}

const selectContact = prepare<ContactKey & { accountId: string }, ContactRow>({ name: 'find_contact' })`
  SELECT contacts.audience_id, contacts.subscriber_id, subscribers.email, subscribers.first_name,
    subscribers.last_name, contacts.status, subscribers.properties, contacts.confirmation_sent_at,
    contacts.created_at, contacts.updated_at
  FROM contacts JOIN subscribers ON subscribers.id = contacts.subscriber_id
  WHERE contacts.audience_id = ${'audienceId'} AND contacts.account_id = ${'accountId'}
    AND contacts.subscriber_id = ${'subscriberId'}
`

export async function findContact(
  handle: Handle,
  accountId: string,
  { audienceId, subscriberId }: ContactKey,
): Promise<ContactRow | undefined> {
  const [row] = await selectContact(handle, { accountId, audienceId, subscriberId })
  return row
}

const selectUnsubscribed = prepare<
  { accountId: string; audienceId: string; addressKeys: readonly string[] },
  { unsubscribed: string[] }
>({ name: 'find_unsubscribed' })`
  SELECT ARRAY(
    SELECT s.email_key FROM subscribers s
    LEFT JOIN contacts c ON c.audience_id = a.id AND c.subscriber_id = s.id
    WHERE s.account_id = ${'accountId'} AND s.email_key = ANY(${'addressKeys'}::text[])
      AND (s.status = 'unsubscribed' OR c.status <> 'active')
  ) AS unsubscribed
  FROM audiences a WHERE a.account_id = ${'accountId'} AND a.id = ${'audienceId'}
`

/**
 * Returns the keys of the addresses whose owners have unsubscribed from an audience or from everything, or have not
 * confirmed yet. Returns undefined when there is no such audience.
 */
export async function findUnsubscribed(
  handle: Handle,
  params: { accountId: string; audienceId: string; addressKeys: readonly string[] },
): Promise<string[] | undefined> {
  const [row] = await selectUnsubscribed(handle, params)
  return row?.unsubscribed
}

export type ContactPage = {
  audienceId: string
  search?: string | undefined
  status?: SubscriptionStatus | undefined
  /** A condition over the aliases `c` (contacts) and `s` (their row of subscribers) that is true or false. */
  matching?: RawBuilder<boolean> | undefined
  after?: string | undefined
  limit: number
  /** Most contacts that are looked at. Default: 10,000. */
  looked?: number
}

/**
 * Returns contacts, newest subscribers first. With `status` or `matching` it looks through 10,000 at most: see
 * `selectFitting`. With `search` it finds some of many: see `searchPeople`.
 *
 * @param page.after Id of the last subscriber of the page before.
 */
export async function selectContacts(
  handle: Handle,
  accountId: string,
  { audienceId, search, status, matching, after, limit, looked }: ContactPage,
): Promise<FittingPage<ContactRow>> {
  const rows =
    search === undefined
      ? newestContacts(audienceId, { status, after })
      : sql`
          SELECT c.*, c.subscriber_id AS id FROM (
            SELECT id FROM (${searchPeople(accountId, search)}) AS m
            WHERE ${after === undefined ? sql`true` : sql`id < ${after}`} ORDER BY id DESC
          ) AS m
          -- OFFSET 0 makes the planner look up each contact by the primary key, whatever the statistics say.
          CROSS JOIN LATERAL (
            SELECT * FROM contacts WHERE audience_id = ${audienceId} AND subscriber_id = m.id OFFSET 0
          ) AS c
          ORDER BY m.id DESC`
  const fits = [sql`account_id = ${accountId}`]
  if (status !== undefined) fits.push(sql`status = ${status}`)
  if (matching !== undefined) fits.push(fitting(accountId, matching))
  return selectFitting<ContactRow>(handle, {
    rows,
    fits: sql`${sql.join(fits, sql` AND `)}`,
    as: 'contact',
    columns: sql`audience_id, subscriber_id, person.email, person.first_name, person.last_name, status, person.properties,
      confirmation_sent_at, created_at, updated_at`,
    join: sql`LEFT JOIN LATERAL (
      SELECT email, first_name, last_name, properties FROM subscribers WHERE id = contact.subscriber_id OFFSET 0
    ) AS person ON true`,
    limit,
    ...(looked !== undefined && { looked }),
  })
}

/**
 * Returns a condition on a row of `contacts` whose columns have no alias. As a value of a subquery it is computed row by
 * row, until the page is full, whatever the statistics say.
 */
function fitting(accountId: string, matching: RawBuilder<boolean>): RawBuilder<boolean> {
  return sql`(
    SELECT ${matching} FROM (SELECT audience_id, subscriber_id, account_id, status, created_at, updated_at) AS c
    JOIN subscribers s ON s.id = c.subscriber_id WHERE s.account_id = ${accountId}
  )`
}

function newestContacts(
  audienceId: string,
  { status, after }: Pick<ContactPage, 'status' | 'after'>,
): RawBuilder<unknown> {
  const bounds = [idsWithin(['audience_id', 'subscriber_id'], audienceId, { below: [after] })]
  // They have an index of their own.
  if (status === 'unsubscribed') bounds.push(sql`status = 'unsubscribed'`)
  return sql`
    SELECT *, subscriber_id AS id FROM contacts WHERE ${sql.join(bounds, sql` AND `)}
    ORDER BY audience_id DESC, subscriber_id DESC
  `
}

export type SubscriberContactRow = {
  audience_id: string
  audience_name: string
  status: SubscriptionStatus
  created_at: Date
  updated_at: Date
}

/**
 * Returns the contacts of a person, newest audiences first. Returns undefined when there is no such person.
 *
 * @param page.after Id of the last audience of the page before.
 */
export async function selectContactsOf(
  handle: Handle,
  accountId: string,
  { subscriberId, after, limit }: { subscriberId: string; after?: string | undefined; limit: number },
): Promise<SubscriberContactRow[] | undefined> {
  const { rows } = await sql<SubscriberContactRow | { audience_id: null }>`
    SELECT c.audience_id, a.name AS audience_name, c.status, c.created_at, c.updated_at
    FROM subscribers s
    -- The account is compared outside: inside, the planner would expect few rows and sort them all.
    LEFT JOIN LATERAL (
      SELECT * FROM contacts
      WHERE ${idsWithin(['subscriber_id', 'audience_id'], subscriberId, { below: [after] })}
      ORDER BY subscriber_id DESC, audience_id DESC
      LIMIT ${limit}
    ) AS c ON c.account_id = s.account_id
    -- OFFSET 0 makes the planner look up each audience by the primary key, whatever the statistics say.
    LEFT JOIN LATERAL (
      SELECT name FROM audiences WHERE account_id = s.account_id AND id = c.audience_id OFFSET 0
    ) AS a ON true
    WHERE s.account_id = ${accountId} AND s.id = ${subscriberId}
    ORDER BY c.audience_id DESC
  `.execute(handle)
  if (rows.length === 0) return undefined
  return rows.filter((row) => row.audience_id !== null)
}

/** Locks a contact, whose person is locked. Returns what was sent to ask them to confirm. */
export async function lockContact(
  trx: Trx,
  accountId: string,
  { audienceId, subscriberId }: ContactKey,
): Promise<(AskedBefore & { status: SubscriptionStatus }) | undefined> {
  return trx
    .selectFrom('contacts')
    .select(['status', 'confirmations_sent as count', 'confirmation_sent_at as at'])
    .where('audience_id', '=', audienceId)
    .where('subscriber_id', '=', subscriberId)
    .where('account_id', '=', accountId)
    .forNoKeyUpdate()
    .executeTakeFirst()
}

/** Counts one more email that asks to confirm, to each of the contacts. */
export async function markAsked(
  trx: Trx,
  { accountId, audienceId }: { accountId: string; audienceId: string },
  subscriberIds: ReadonlySet<string>,
  at: Date,
): Promise<void> {
  if (subscriberIds.size === 0) return
  await sql`
    UPDATE contacts SET confirmations_sent = confirmations_sent + 1, confirmation_sent_at = ${at}
    WHERE audience_id = ${audienceId} AND subscriber_id = ANY(${[...subscriberIds]}::text[])
      AND account_id = ${accountId}
  `.execute(trx)
}

/** Deletes a contact. Returns its last status, or undefined when it did not exist. */
export async function deleteContact(
  trx: Trx,
  accountId: string,
  { audienceId, subscriberId }: ContactKey,
): Promise<SubscriptionStatus | undefined> {
  const row = await trx
    .deleteFrom('contacts')
    .where('audience_id', '=', audienceId)
    .where('subscriber_id', '=', subscriberId)
    .where('account_id', '=', accountId)
    .returning('status')
    .executeTakeFirst()
  return row?.status
}
