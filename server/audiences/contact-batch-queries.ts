import type { PersonStatus, SubscriptionStatus } from '../../contract/subscribers.ts'
import { plainArray, textArrays } from '../database/arrays.ts'
import type { Trx } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import type { DoubleOptIn, Properties } from '../database/tables/people.ts'

/*
 * Many contacts of one audience in a few statements. Lock order: the audience, the people by id, their contacts by
 * audience and person. People are inserted in order of their addresses, so that two batches with the same new people do
 * not wait for each other in a circle.
 */

type HeldAudience = { id: string; name: string; double_opt_in: DoubleOptIn | null }

const lockOne = prepare<{ accountId: string; audienceId: string }, HeldAudience>({ name: 'lock_audience_for_batch' })`
  SELECT id, name, double_opt_in FROM audiences
  WHERE account_id = ${'accountId'} AND id = ${'audienceId'} FOR KEY SHARE
`

/** Keeps an audience from being deleted before the commit. Returns undefined when there is none. */
export async function lockAudience(trx: Trx, accountId: string, audienceId: string): Promise<HeldAudience | undefined> {
  const [audience] = await lockOne(trx, { accountId, audienceId })
  return audience
}

/** A person to be added, if they are new. */
export type BatchPerson = {
  id: string
  email: string
  emailKey: string
  firstName: string | null
  lastName: string | null
  properties: Properties
}

type Columns = {
  accountId: string
  ids: string
  emails: Buffer
  keys: Buffer
  firstNames: Buffer
  lastNames: Buffer
  properties: Buffer
  at: Date
}

const insertNew = prepare<Columns, { email_key: string }>({ name: 'insert_people_of_batch' })`
  INSERT INTO subscribers (id, account_id, email, email_key, first_name, last_name, properties, created_at, updated_at)
  SELECT id, ${'accountId'}, email, email_key, first_name, last_name, properties::jsonb, ${'at'}::timestamptz,
    ${'at'}::timestamptz
  FROM unnest(${'ids'}::text[], ${'emails'}::text[], ${'keys'}::text[], ${'firstNames'}::text[],
    ${'lastNames'}::text[], ${'properties'}::text[])
    AS p (id, email, email_key, first_name, last_name, properties)
  ORDER BY email_key COLLATE "C"
  ON CONFLICT (account_id, email_key) DO NOTHING
  RETURNING email_key
`

/** Inserts those people whose address is new. Returns the keys of their addresses. */
export async function insertPeople(
  trx: Trx,
  accountId: string,
  people: readonly BatchPerson[],
  at: Date,
): Promise<Set<string>> {
  const columns = await textArrays({
    emails: people.map(({ email }) => email),
    keys: people.map(({ emailKey }) => emailKey),
    firstNames: people.map(({ firstName }) => firstName),
    lastNames: people.map(({ lastName }) => lastName),
    properties: people.map(({ properties }) => JSON.stringify(properties)),
  })
  const rows = await insertNew(trx, { accountId, ids: plainArray(people.map(({ id }) => id)), ...columns, at })
  return new Set(rows.map((row) => row.email_key))
}

/** A person who was there before. */
export type KnownPerson = {
  id: string
  email: string
  email_key: string
  first_name: string | null
  last_name: string | null
  status: PersonStatus
  properties: Properties
}

const lockForChange = prepare<{ accountId: string; keys: Buffer }, KnownPerson>({ name: 'lock_people_of_batch' })`
  SELECT id, email, email_key, first_name, last_name, status, properties FROM subscribers
  WHERE account_id = ${'accountId'} AND email_key = ANY(${'keys'}::text[]) ORDER BY id FOR NO KEY UPDATE
`

const lockAsTheyAre = prepare<{ accountId: string; keys: Buffer }, KnownPerson>({ name: 'share_people_of_batch' })`
  SELECT id, email, email_key, first_name, last_name, status, properties FROM subscribers
  WHERE account_id = ${'accountId'} AND email_key = ANY(${'keys'}::text[]) ORDER BY id FOR SHARE
`

/** Locks the people with these addresses until the transaction ends: to change them, or to keep them unchanged. */
export async function lockPeople(
  trx: Trx,
  accountId: string,
  { keys, isChange }: { keys: readonly string[]; isChange: boolean },
): Promise<KnownPerson[]> {
  const columns = await textArrays({ keys })
  return (isChange ? lockForChange : lockAsTheyAre)(trx, { accountId, ...columns })
}

export type PersonUpdate = {
  id: string
  firstName: string | null
  lastName: string | null
  properties: Properties
}

type UpdateColumns = Omit<Columns, 'emails' | 'keys'>

const updateMany = prepare<UpdateColumns>({ name: 'update_people_of_batch' })`
  UPDATE subscribers SET first_name = p.first_name, last_name = p.last_name, properties = p.properties::jsonb,
    updated_at = ${'at'}::timestamptz
  FROM unnest(${'ids'}::text[], ${'firstNames'}::text[], ${'lastNames'}::text[], ${'properties'}::text[])
    AS p (id, first_name, last_name, properties)
  WHERE subscribers.id = p.id AND subscribers.account_id = ${'accountId'}
`

/** Updates locked people. */
export async function updatePeople(
  trx: Trx,
  accountId: string,
  people: readonly PersonUpdate[],
  at: Date,
): Promise<void> {
  const columns = await textArrays({
    firstNames: people.map(({ firstName }) => firstName),
    lastNames: people.map(({ lastName }) => lastName),
    properties: people.map(({ properties }) => JSON.stringify(properties)),
  })
  await updateMany(trx, { accountId, ids: plainArray(people.map(({ id }) => id)), ...columns, at })
}

type ContactColumns = { accountId: string; audienceId: string; ids: string; statuses: string }

const insertMany = prepare<ContactColumns, { subscriber_id: string }>({ name: 'insert_contacts_of_batch' })`
  INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
  -- PostgreSQL's time, as in contact-queries.ts.
  SELECT ${'audienceId'}, id, ${'accountId'}, status, date_trunc('milliseconds', pgboss.job_now()),
    date_trunc('milliseconds', pgboss.job_now())
  FROM unnest(${'ids'}::text[], ${'statuses'}::text[]) AS c (id, status)
  ORDER BY id COLLATE "C"
  ON CONFLICT (audience_id, subscriber_id) DO NOTHING
  RETURNING subscriber_id
`

/** Puts people on a list. Returns the ids of those who were not on it. */
export async function insertContacts(
  trx: Trx,
  scope: { accountId: string; audienceId: string },
  contacts: readonly { id: string; status: SubscriptionStatus }[],
): Promise<Set<string>> {
  const ids = plainArray(contacts.map(({ id }) => id))
  const statuses = plainArray(contacts.map(({ status }) => status))
  const rows = await insertMany(trx, { ...scope, ids, statuses })
  return new Set(rows.map((row) => row.subscriber_id))
}

type Unsubscription = { accountId: string; audienceId: string; ids: string; at: Date }

const unsubscribeMany = prepare<Unsubscription, { subscriber_id: string }>({ name: 'unsubscribe_contacts_of_batch' })`
  WITH wanted AS (
    SELECT subscriber_id FROM contacts
    WHERE audience_id = ${'audienceId'} AND subscriber_id = ANY(${'ids'}::text[])
      AND account_id = ${'accountId'} AND status <> 'unsubscribed'
    ORDER BY subscriber_id FOR NO KEY UPDATE
  )
  UPDATE contacts SET status = 'unsubscribed', updated_at = greatest(created_at, ${'at'}::timestamptz)
  WHERE audience_id = ${'audienceId'} AND subscriber_id = ANY(ARRAY(SELECT subscriber_id FROM wanted))
  RETURNING subscriber_id
`

/** Unsubscribes people from one audience. Returns the ids of those who were not unsubscribed from it. */
export async function unsubscribeContacts(
  trx: Trx,
  scope: { accountId: string; audienceId: string },
  ids: readonly string[],
  at: Date,
): Promise<Set<string>> {
  const rows = await unsubscribeMany(trx, { ...scope, ids: plainArray(ids), at })
  return new Set(rows.map((row) => row.subscriber_id))
}

const selectSubscribed = prepare<Omit<Unsubscription, 'at'>, { subscriber_id: string }>({
  name: 'find_subscribed_of_batch',
})`
  SELECT c.subscriber_id FROM contacts c JOIN subscribers s ON s.id = c.subscriber_id
  WHERE c.audience_id = ${'audienceId'} AND c.subscriber_id = ANY(${'ids'}::text[]) AND c.account_id = ${'accountId'}
    AND c.status <> 'unsubscribed' AND s.account_id = ${'accountId'} AND s.status <> 'unsubscribed'
`

/** Returns which of these people have unsubscribed neither from the audience nor from everything. */
export async function findSubscribed(
  trx: Trx,
  scope: { accountId: string; audienceId: string },
  ids: readonly string[],
): Promise<string[]> {
  const rows = await selectSubscribed(trx, { ...scope, ids: plainArray(ids) })
  return rows.map((row) => row.subscriber_id)
}

/** A contact of a person who changed. */
export type ChangedContact = { audience_id: string; subscriber_id: string }

type Page = { accountId: string; ids: string; audience: string; person: string; limit: number; at: Date }

const touchMany = prepare<Page, ChangedContact>({ name: 'touch_contacts_of_batch' })`
  WITH page AS MATERIALIZED (
    SELECT audience_id, subscriber_id FROM contacts
    WHERE subscriber_id = ANY(${'ids'}::text[]) AND account_id = ${'accountId'}
      AND (audience_id, subscriber_id) > (${'audience'}, ${'person'})
    ORDER BY audience_id, subscriber_id LIMIT ${'limit'} FOR NO KEY UPDATE
  ), touched AS (
    UPDATE contacts c SET updated_at = greatest(c.created_at, ${'at'}::timestamptz) FROM page
    WHERE c.audience_id = page.audience_id AND c.subscriber_id = page.subscriber_id
  )
  SELECT audience_id, subscriber_id FROM page ORDER BY audience_id, subscriber_id
`

/** Contacts read by one statement. */
const contactsAtOnce = 1_000

/** Marks all contacts of people who changed, in all audiences, and yields them page by page. */
export async function* touchContacts(
  trx: Trx,
  accountId: string,
  subscriberIds: readonly string[],
  at: Date,
): AsyncGenerator<ChangedContact[]> {
  const ids = plainArray(subscriberIds)
  let [audience, person] = ['', '']
  for (;;) {
    const page = await touchMany(trx, { accountId, ids, audience, person, limit: contactsAtOnce, at })
    if (page.length > 0) yield page
    const last = page.at(-1)
    if (last === undefined || page.length < contactsAtOnce) return
    audience = last.audience_id
    person = last.subscriber_id
  }
}
