import { type RawBuilder, sql } from 'kysely'
import type { PropertyType } from '../../contract/contact-properties.ts'
import type {
  Comparison,
  ConditionValue,
  EngagementCondition,
  SegmentCondition,
} from '../../contract/segment-conditions.ts'
import type { ContactField, Engagement, Operator } from '../../contract/segment-operators.ts'
import { getsTopic } from '../topics/choices.ts'
import type { Named } from './condition-faults.ts'

/*
 * Conditions of segments as SQL. Each part is true or false, never null: `not` and `is_not` then mean what they say.
 * Values of people are compared as what they are stored as, so no cast can fail: a value of another type counts as none.
 */

/** With the properties and the topics of the account. All that the conditions name are there. */
export type CompileOptions = Named & {
  accountId: string
  /** The time that `in_last_days` and `inLastDays` count back from. */
  at: Date
}

/**
 * Returns conditions as one condition over the aliases `c` (a row of `contacts`) and `s` (their row of `subscribers`).
 * It is true or false, never null. All values are parameters.
 *
 * @param condition Without faults: see `conditionFaults`.
 */
export function compileCondition(condition: SegmentCondition, options: CompileOptions): RawBuilder<boolean> {
  switch (condition.type) {
    case 'and':
    case 'or': {
      const parts = condition.conditions.map((inner) => compileCondition(inner, options))
      return sql`(${sql.join(parts, condition.type === 'and' ? sql` AND ` : sql` OR `)})`
    }
    case 'not':
      return sql`(NOT ${compileCondition(condition.condition, options)})`
    case 'engagement':
      return engaged(condition, options)
    case 'topic': {
      const { topicId: id, subscribed } = condition
      const defaultChoice = options.topics.get(id)
      if (defaultChoice === undefined) throw new Error(`the account has no topic "${id}"`)
      const gets = getsTopic(options.accountId, { id, defaultChoice })
      return subscribed ? gets : sql`(NOT ${gets})`
    }
    case 'property': {
      const { property: key, operator, value } = condition
      const type = options.types.get(key)
      if (type === undefined) throw new Error(`the account has no contact property "${key}"`)
      return ofProperty({ key, type, operator, value }, options.at)
    }
    case 'field':
      return ofField(condition, options.at)
  }
}

/** Returns whether conditions read no column but `c.status`. */
export function isOfStatusAlone(condition: SegmentCondition): boolean {
  switch (condition.type) {
    case 'and':
    case 'or':
      return condition.conditions.every(isOfStatusAlone)
    case 'not':
      return isOfStatusAlone(condition.condition)
    case 'field':
      return condition.field === 'status'
    default:
      return false
  }
}

type PropertyComparison = { key: string; type: PropertyType; operator: Operator; value: ConditionValue }

function ofProperty({ key, type, operator, value }: PropertyComparison, at: Date): RawBuilder<boolean> {
  const stored = sql`(s.properties -> ${key}::text)`
  const text = sql<string>`(s.properties ->> ${key}::text)`
  const isOfType = type === 'date' ? hasFormOfDate(text) : sql<boolean>`jsonb_typeof(${stored}) = ${type}`
  const pair = sql`${JSON.stringify({ [key]: value })}::jsonb`
  switch (operator) {
    // Containment compares type and value in one step.
    case 'is':
      return sql`(s.properties @> ${pair})`
    case 'is_not':
      return sql`(NOT s.properties @> ${pair})`
    case 'exists':
      return whether(value === true, isOfType)
  }
  // The type behind the comparison, which fewer values reach.
  if (type === 'number') return known(sql`${compareNumber(stored, operator, value)} AND ${isOfType}`)
  if (type === 'date') return known(sql`${compareDate(text, { operator, value }, at)} AND ${isOfType}`)
  return known(sql`${compareText(text, operator, value)} AND ${isOfType}`)
}

/** Only a JSON string can have this form. It may have been stored as text once that is no date. */
function hasFormOfDate(text: RawBuilder<string>): RawBuilder<boolean> {
  return sql`translate(${text}, '123456789', '000000000') = '0000-00-00'`
}

const numberOperators: Partial<Record<Operator, RawBuilder<unknown>>> = {
  less_than: sql`<`,
  at_most: sql`<=`,
  greater_than: sql`>`,
  at_least: sql`>=`,
}

/** Two JSON numbers are compared by their exact value. */
function compareNumber(stored: RawBuilder<unknown>, operator: Operator, value: ConditionValue): RawBuilder<boolean> {
  return sql`${stored} ${sqlOf(numberOperators, operator)} ${JSON.stringify(value)}::jsonb`
}

/** Dates in this form are in order as texts of bytes. */
function compareDate(
  text: RawBuilder<string>,
  { operator, value }: Pick<Comparison, 'operator' | 'value'>,
  at: Date,
): RawBuilder<boolean> {
  const inOrder = sql`${text} COLLATE "C"`
  if (operator === 'before') return sql`${inOrder} < ${value}`
  if (operator === 'after') return sql`${inOrder} > ${value}`
  const [first, today] = [daysBefore(at, Number(value)), at].map((day) => day.toISOString().slice(0, 10))
  return sql`${inOrder} >= ${first} AND ${inOrder} <= ${today}`
}

function compareText(text: RawBuilder<string>, operator: Operator, value: ConditionValue): RawBuilder<boolean> {
  switch (operator) {
    case 'is':
      return sql`${text} = ${value}`
    case 'contains':
      return sql`strpos(${text}, ${value}) > 0`
    case 'starts_with':
      return sql`starts_with(${text}, ${value})`
    default:
      throw new Error(`a text has no operator ${operator}`)
  }
}

/** The SQL expressions that `field` conditions read. */
const columns: Readonly<Record<ContactField, RawBuilder<string>>> = {
  email: sql`s.email_key`,
  emailDomain: sql`split_part(s.email_key, '@', 2)`,
  firstName: sql`s.first_name`,
  lastName: sql`s.last_name`,
  status: sql`c.status`,
  subscriberStatus: sql`s.status`,
  createdAt: sql`c.created_at`,
}

function ofField({ field, operator, value }: Extract<Comparison, { type: 'field' }>, at: Date): RawBuilder<boolean> {
  const column = columns[field]
  if (field === 'createdAt') return compareTime(column, { operator, value }, at)
  const given = field === 'email' || field === 'emailDomain' ? lowerCase(value) : value
  if (operator === 'exists') return whether(value === true, sql`${column} IS NOT NULL`)
  if (operator === 'is_not') return sql`(NOT ${known(compareText(column, 'is', given))})`
  return known(compareText(column, operator, given))
}

function lowerCase(value: ConditionValue): ConditionValue {
  return typeof value === 'string' ? value.toLowerCase() : value
}

function compareTime(
  column: RawBuilder<unknown>,
  { operator, value }: Pick<Comparison, 'operator' | 'value'>,
  at: Date,
): RawBuilder<boolean> {
  if (operator === 'in_last_days') return sql`(${column} >= ${daysBefore(at, Number(value))}::timestamptz)`
  // A Date, because PostgreSQL does not read the year 0.
  const time = new Date(String(value))
  return operator === 'before' ? sql`(${column} < ${time}::timestamptz)` : sql`(${column} > ${time}::timestamptz)`
}

/** When it happened to a recipient for the first time. */
const happenedAt: Readonly<Record<Engagement, RawBuilder<Date | null>>> = {
  sent: sql`r.accepted_at`,
  received: sql`r.delivered_at`,
  opened: sql`r.opened_at`,
  clicked: sql`r.clicked_at`,
}

/** Only emails of live keys: what a test key sends must not decide who gets live email. */
function engaged(
  { event, inLastDays, campaignId }: EngagementCondition,
  { accountId, at }: CompileOptions,
): RawBuilder<boolean> {
  const time = happenedAt[event]
  const isRecent =
    inLastDays === undefined ? sql`${time} IS NOT NULL` : sql`${time} >= ${daysBefore(at, inLastDays)}::timestamptz`
  const ofCampaign = campaignId === undefined ? sql`true` : sql`e.campaign_id = ${campaignId}`
  return sql`EXISTS (
    SELECT FROM email_recipients r JOIN emails e ON e.id = r.email_id
    WHERE r.account_id = ${accountId} AND r.address_key = s.email_key AND ${isRecent}
      AND e.account_id = ${accountId} AND e.mode = 'live' AND ${ofCampaign}
  )`
}

/** Makes false of null. */
function known(condition: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql`((${condition}) IS TRUE)`
}

function whether(holds: boolean, condition: RawBuilder<unknown>): RawBuilder<boolean> {
  return holds ? known(condition) : sql`(NOT ${known(condition)})`
}

function sqlOf(table: Partial<Record<Operator, RawBuilder<unknown>>>, operator: Operator): RawBuilder<unknown> {
  const written = table[operator]
  if (written === undefined) throw new Error(`this type has no operator ${operator}`)
  return written
}

const dayMs = 86_400_000

function daysBefore(at: Date, days: number): Date {
  return new Date(at.getTime() - days * dayMs)
}
