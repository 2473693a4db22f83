import { sql } from 'kysely'
import type { PropertyType } from '../../contract/contact-properties.ts'
import type { Mode } from '../../contract/mode.ts'
import type { SegmentCondition } from '../../contract/segment-conditions.ts'
import type { Engagement } from '../../contract/segment-operators.ts'
import type { TopicDefault } from '../../contract/topics.ts'
import type { Db } from '../../server/database/connection.ts'
import { newId } from '../../server/shared/ids.ts'

/*
 * People with everything that conditions of segments look at, in memory and in a database, and what the conditions mean,
 * written without SQL.
 */

export type SegmentPerson = {
  email: string
  firstName: string | null
  lastName: string | null
  subscriberStatus: 'active' | 'unsubscribed'
  /** Of the contact. */
  status: 'active' | 'unsubscribed' | 'pending'
  createdAt: Date
  /** As stored: anything may have been left of a property that was deleted. */
  properties: Readonly<Record<string, unknown>>
  emails: readonly SegmentEmail[]
  /** The choices of the person, by the id of the topic. Default: none. */
  choices?: Readonly<Record<string, boolean>>
}

/** An email to the person, and when something happened to it for the first time. */
export type SegmentEmail = { mode: Mode; campaignId: string | null } & Readonly<Record<Engagement, Date | null>>

export type PropertyTypes = ReadonlyMap<string, PropertyType>

/** The data that a condition needs besides the person. Default: no topics. */
type Context = { at: Date; types: PropertyTypes; topics?: ReadonlyMap<string, TopicDefault> }

const dayMs = 86_400_000

/** Whether a condition holds for a person. */
export function holdsFor(condition: SegmentCondition, person: SegmentPerson, context: Context): boolean {
  const daysAgo = (days: unknown) => new Date(context.at.getTime() - Number(days) * dayMs)
  switch (condition.type) {
    case 'and':
      return condition.conditions.every((inner) => holdsFor(inner, person, context))
    case 'or':
      return condition.conditions.some((inner) => holdsFor(inner, person, context))
    case 'not':
      return !holdsFor(condition.condition, person, context)
    case 'engagement': {
      const { event, inLastDays, campaignId } = condition
      return person.emails.some((email) => {
        const time = email[event]
        if (email.mode !== 'live' || time === null) return false
        if (campaignId !== undefined && email.campaignId !== campaignId) return false
        return inLastDays === undefined || time >= daysAgo(inLastDays)
      })
    }
    case 'topic': {
      const gets = person.choices?.[condition.topicId] ?? context.topics?.get(condition.topicId) === 'opt_out'
      return gets === condition.subscribed
    }
    case 'property': {
      const type = context.types.get(condition.property)
      const stored = person.properties[condition.property]
      const value = isOfType(stored, type) ? stored : undefined
      if (type !== 'date') return compares(value, condition)
      if (condition.operator !== 'in_last_days') return compares(value, condition)
      const day = (time: Date) => time.toISOString().slice(0, 10)
      return value !== undefined && value >= day(daysAgo(condition.value)) && value <= day(context.at)
    }
    case 'field': {
      const { field, operator, value: given } = condition
      if (field === 'createdAt') {
        if (operator === 'in_last_days') return person.createdAt >= daysAgo(given)
        const time = new Date(String(given))
        return operator === 'before' ? person.createdAt < time : person.createdAt > time
      }
      const address = person.email.toLowerCase()
      if (field === 'email' || field === 'emailDomain') {
        const value = field === 'email' ? address : address.split('@')[1]
        const lower = typeof given === 'string' ? given.toLowerCase() : given
        return compares(value, { operator, value: lower })
      }
      return compares(person[field] ?? undefined, { operator, value: given })
    }
  }
}

function isOfType(value: unknown, type: PropertyType | undefined): value is string | number | boolean {
  if (type === 'date') return typeof value === 'string' && /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(value)
  return typeof value === type
}

function compares(
  value: string | number | boolean | undefined,
  { operator, value: given }: { operator: string; value: string | number | boolean },
): boolean {
  switch (operator) {
    case 'is':
      return value === given
    case 'is_not':
      return value !== given
    case 'exists':
      return (value !== undefined) === given
  }
  if (value === undefined) return false
  switch (operator) {
    case 'contains':
      return String(value).includes(String(given))
    case 'starts_with':
      return String(value).startsWith(String(given))
    case 'less_than':
    case 'before':
      return value < given
    case 'at_most':
      return value <= given
    case 'greater_than':
    case 'after':
      return value > given
    case 'at_least':
      return value >= given
    default:
      throw new Error(`the evaluator does not know ${operator}`)
  }
}

let manyCounter = 0

/** Puts many people without anything on a list. Returns their ids, in order. */
export async function insertManyContacts(
  db: Db,
  { accountId, audienceId }: { accountId: string; audienceId: string },
  count: number,
): Promise<string[]> {
  const prefix = `many-${++manyCounter}-`
  const ids = Array.from({ length: count }, () => newId('subscriber', new Date()))
  await sql`
    WITH person AS (
      INSERT INTO subscribers (id, account_id, email, email_key)
      SELECT id, ${accountId}, ${prefix}::text || n || '@example.com', ${prefix}::text || n || '@example.com'
      FROM unnest(${ids}::text[]) WITH ORDINALITY AS i (id, n)
      RETURNING id
    )
    INSERT INTO contacts (audience_id, subscriber_id, account_id, status)
    SELECT ${audienceId}, id, ${accountId}, 'active' FROM person
  `.execute(db)
  return ids
}

/** Puts people on a list, with what happened to emails to them. Returns the id of each. */
export async function insertSegmentPeople(
  db: Db,
  { accountId, audienceId }: { accountId: string; audienceId: string },
  people: readonly SegmentPerson[],
): Promise<string[]> {
  const at = new Date('2026-01-01T00:00:00Z')
  const rows = people.map((person) => ({ ...person, id: newId('subscriber', at) }))
  if (rows.length === 0) return []
  await db
    .insertInto('subscribers')
    .values(
      rows.map(({ id, email, firstName, lastName, subscriberStatus, properties }) => ({
        id,
        account_id: accountId,
        email,
        email_key: email.toLowerCase(),
        first_name: firstName,
        last_name: lastName,
        status: subscriberStatus,
        properties: JSON.stringify(properties),
      })),
    )
    .execute()
  await db
    .insertInto('contacts')
    .values(
      rows.map(({ id, status, createdAt }) => ({
        audience_id: audienceId,
        subscriber_id: id,
        account_id: accountId,
        status,
        created_at: createdAt,
      })),
    )
    .execute()
  const choices = rows.flatMap(({ id, choices = {} }) =>
    Object.entries(choices).map(([topicId, subscribed]) => ({
      account_id: accountId,
      subscriber_id: id,
      topic_id: topicId,
      subscribed,
      changed_at: at,
    })),
  )
  if (choices.length > 0) await db.insertInto('topic_choices').values(choices).execute()
  const emails = rows.flatMap(({ email, emails: theirs }) =>
    theirs.map((one) => ({ ...one, id: newId('email', at), address: email })),
  )
  if (emails.length === 0) return rows.map(({ id }) => id)
  await db
    .insertInto('emails')
    .values(
      emails.map(({ id, mode, campaignId }) => ({
        id,
        account_id: accountId,
        mode,
        status: 'delivered' as const,
        domain_id: null,
        sender: 'hello@example.test',
        subject: 'News',
        message_id: `<${id}@example.test>`,
        campaign_id: campaignId,
        audience_id: audienceId,
        scheduled_at: null,
        created_at: at,
        updated_at: at,
        completed_at: at,
      })),
    )
    .execute()
  await db
    .insertInto('email_recipients')
    .values(
      emails.map(({ id, address, sent, received, opened, clicked }) => ({
        email_id: id,
        position: 0,
        account_id: accountId,
        kind: 'to' as const,
        name: null,
        address,
        address_key: address.toLowerCase(),
        domain: address.slice(address.indexOf('@') + 1).toLowerCase(),
        status: 'delivered' as const,
        first_attempt_at: at,
        next_attempt_at: null,
        reason: null,
        delayed_at: null,
        accepted_at: sent,
        delivered_at: received,
        opened_at: opened,
        clicked_at: clicked,
        complained_at: null,
      })),
    )
    .execute()
  return rows.map(({ id }) => id)
}
