import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PropertyType } from '../../contract/contact-properties.ts'
import { exampleId } from '../../contract/ids.ts'
import { modes } from '../../contract/mode.ts'
import { conditions as conditionsSchema, type SegmentCondition } from '../../contract/segment-conditions.ts'
import {
  type Comparable,
  type ContactField,
  conditionLimits,
  contactFields,
  engagements,
  type Operator,
  operatorsOf,
} from '../../contract/segment-operators.ts'
import type { TopicDefault } from '../../contract/topics.ts'
import { compileCondition } from '../../server/segments/compile.ts'
import { conditionFaults } from '../../server/segments/condition-faults.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { holdsFor, insertSegmentPeople, type SegmentPerson } from '../support/segment-people.ts'

/*
 * Whatever conditions a segment has and whatever people there are: PostgreSQL finds those for whom the conditions hold
 * by their meaning, and nobody else.
 */

let database: TestDatabase
let accountId: string
const audienceId = exampleId('audience')
const at = new Date('2026-03-15T12:00:00.000Z')

beforeAll(async () => {
  database = await createTestDatabase()
  accountId = await seedAccount(database.db, at)
  await database.db
    .insertInto('topics')
    .values(
      [...topics].map(([id, default_choice]) => ({
        account_id: accountId,
        id,
        name: default_choice,
        description: null,
        default_choice,
        created_at: at,
        updated_at: at,
        deleted_at: null,
      })),
    )
    .execute()
  await database.db.insertInto('audiences').values({ id: audienceId, account_id: accountId, name: 'News' }).execute()
})
afterAll(() => database.drop())

const types = new Map<string, PropertyType>([
  ['plan', 'string'],
  ['seats', 'number'],
  ['vip', 'boolean'],
  ['born', 'date'],
])

const topics = new Map<string, TopicDefault>([
  [newId('topic', at), 'opt_in'],
  [newId('topic', at), 'opt_out'],
])
const named = { types, topics }

/** Few, so that people and conditions meet, with all that SQL, LIKE and JSON could take for something else. */
const texts = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('pro', 'prod', 'Pro', 'a', 'ä', 'a\u0308', 'Ä', '😀', '😀b', 'x@example.com'),
  },
  { weight: 2, arbitrary: fc.constantFrom('%', '_', '\\', "'; DROP TABLE contacts; --", '"', '{}', '$1', 'null', '5') },
  { weight: 2, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 }).filter(isStorable) },
)
const numbers = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(0, -0, 1) },
  fc.constantFrom(-1, 0.1, 5, 1e21, 1e-7, 5e-324, 2 ** 53, 1.7976931348623157e308),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
)
const dates = fc.oneof(
  fc.constantFrom('2026-03-15', '2026-03-14', '2026-03-16', '2026-02-13', '2024-02-29', '0001-01-01', '9999-12-31'),
  fc
    .date({ min: new Date('2026-01-01'), max: new Date('2026-12-31'), noInvalidDate: true })
    .map((date) => date.toISOString().slice(0, 10)),
)
const days = fc.oneof(fc.constantFrom(1, 30, conditionLimits.days), fc.integer({ min: 1, max: conditionLimits.days }))
const statuses = fc.constantFrom('active' as const, 'unsubscribed' as const)
const contactStatuses = fc.constantFrom('active' as const, 'unsubscribed' as const, 'pending' as const)
const campaigns = fc.constantFrom(exampleId('campaign'), exampleId('campaign').replace(/.$/, 'c'))

/** Around the edges of days before `at`, and further away. */
const times = fc.oneof(
  fc
    .tuple(fc.constantFrom(0, 1, 30, conditionLimits.days), fc.constantFrom(-1, 0, 1))
    .map(([back, ms]) => new Date(at.getTime() - back * 86_400_000 + ms)),
  fc.constantFrom(new Date('1970-01-01T00:00:00Z'), new Date('2038-01-19T03:14:08Z')),
)
const timeTexts = fc.oneof(
  times.map((time) => time.toISOString()),
  times.map((time) => time.toISOString().replace('.000Z', '+00:00')),
  fc.constantFrom('0000-01-01T00:00:00Z', '0000-01-01T00:00:00+14:00', '9999-12-31T23:59:59.999999999-12:00'),
)

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000')
}

/** Values that may be left of a property that had another type. */
const stored = fc.oneof(
  texts,
  fc.constantFrom('', 'true', '2026-03-1', '2026-03-15T00:00:00Z', '٢٠٢٦-٠٣-١٥', 'abcd-ef-gh'),
  numbers.filter(Number.isFinite),
  fc.boolean(),
  dates,
  fc.constantFrom(null, [], {}, ['pro'], { pro: true }, [5], [[true]]),
)

const person: fc.Arbitrary<Omit<SegmentPerson, 'email'>> = fc.record({
  firstName: fc.option(fc.oneof(texts, fc.constant(''))),
  lastName: fc.option(texts),
  subscriberStatus: statuses,
  status: contactStatuses,
  createdAt: times,
  properties: fc.record(
    {
      plan: fc.oneof(texts, stored),
      seats: fc.oneof(numbers, stored),
      vip: fc.oneof(fc.boolean(), stored),
      born: fc.oneof(dates, stored),
    },
    { requiredKeys: [] },
  ),
  emails: fc.array(
    fc.record({
      mode: fc.constantFrom(...modes),
      campaignId: fc.option(campaigns),
      sent: fc.option(times),
      received: fc.option(times),
      opened: fc.option(times),
      clicked: fc.option(times),
    }),
    { maxLength: 2 },
  ),
  choices: fc.dictionary(fc.constantFrom(...topics.keys()), fc.boolean()),
})

const addresses = ['Ada@example.com', 'bob+news@shop.example', "o'neil@EXAMPLE.com", 'pro@mail.example.com', 'x@a-b.co']

const people = fc
  .array(person, { minLength: 1, maxLength: addresses.length })
  .map((found) => found.map((one, index) => ({ ...one, email: addresses[index] ?? '' })))

const values: Readonly<Record<Comparable, fc.Arbitrary<string | number | boolean>>> = {
  string: texts,
  number: numbers,
  boolean: fc.boolean(),
  date: dates,
  time: timeTexts,
  status: statuses,
}

/** An operator of a type, with a value that it takes. */
function comparisons(type: Comparable, own: fc.Arbitrary<string | number | boolean> = values[type]) {
  return fc.constantFrom<Operator>(...operatorsOf[type]).chain((operator) => {
    const special: Partial<Record<Operator, fc.Arbitrary<boolean | number>>> = {
      exists: fc.boolean(),
      in_last_days: days,
    }
    const value: fc.Arbitrary<string | number | boolean> = special[operator] ?? own
    return value.map((given) => ({ operator, value: given }))
  })
}

const addressTexts = fc.oneof(
  texts,
  fc.constantFrom('EXAMPLE.com', 'ada@example.com', 'Ada', '@', '.example', 'shop.example'),
)

/** Values of fields that are not those of their type. */
const ownValues: Partial<Record<ContactField, fc.Arbitrary<string>>> = {
  email: addressTexts,
  emailDomain: addressTexts,
  status: contactStatuses,
}

const leaf: fc.Arbitrary<SegmentCondition> = fc.oneof(
  fc
    .constantFrom(...types)
    .chain(([property, type]) => comparisons(type).map((rest) => ({ type: 'property' as const, property, ...rest }))),
  fc.constantFrom(...(Object.entries(contactFields) as [ContactField, Comparable][])).chain(([field, type]) =>
    comparisons(type, ownValues[field]).map((rest) => ({
      type: 'field' as const,
      field,
      ...rest,
    })),
  ),
  fc.record(
    {
      type: fc.constant('engagement' as const),
      event: fc.constantFrom(...engagements),
      inLastDays: days,
      campaignId: campaigns,
    },
    { requiredKeys: ['type', 'event'] },
  ),
  fc.record({
    type: fc.constant('topic' as const),
    topicId: fc.constantFrom(...topics.keys()),
    subscribed: fc.boolean(),
  }),
)

/** Trees of at most the depth that is allowed. */
function trees(depth: number): fc.Arbitrary<SegmentCondition> {
  if (depth === 1) return leaf
  const inner = trees(depth - 1)
  const group = fc.record({
    type: fc.constantFrom('and' as const, 'or' as const),
    conditions: fc.array(inner, { minLength: 1, maxLength: 3 }),
  })
  return fc.oneof(
    { weight: 2, arbitrary: leaf },
    { weight: 2, arbitrary: group },
    { weight: 1, arbitrary: inner.map((condition) => ({ type: 'not' as const, condition })) },
  )
}

const segments = fc.array(trees(conditionLimits.depth), { minLength: 1, maxLength: 6 })

test('PostgreSQL finds the people for whom conditions hold, and nobody else', async () => {
  const { db } = database
  const found = { some: 0, all: 0, none: 0 }
  const property = fc.asyncProperty(people, segments, async (there, trees) => {
    await sql`TRUNCATE subscribers, contacts, emails, email_recipients, topic_choices CASCADE`.execute(db)
    const ids = await insertSegmentPeople(db, { accountId, audienceId }, there)
    for (const condition of trees) {
      expect(conditionFaults(condition, named, '')).toEqual([])
      const { rows } = await sql<{ id: string; matches: boolean | null }>`
        SELECT s.id, ${compileCondition(condition, { accountId, at, ...named })} AS matches
        FROM contacts c JOIN subscribers s ON s.id = c.subscriber_id ORDER BY s.id
      `.execute(db)
      const expected = there.map((one, index) => ({
        id: ids[index],
        matches: holdsFor(condition, one, { at, ...named }),
      }))
      expect(rows).toEqual(expected)
      const count = expected.filter(({ matches }) => matches).length
      if (count === 0) found.none += 1
      else if (count === expected.length) found.all += 1
      else found.some += 1
    }
  })
  await fc.assert(property, { numRuns: 250 })
  // Otherwise the people and the conditions would not meet.
  expect(Math.min(found.some, found.all, found.none)).toBeGreaterThan(20)
})

test('each of these conditions is read by the contract as it is', () => {
  fc.assert(
    fc.property(trees(conditionLimits.depth), (condition) => {
      const { success, data, error } = conditionsSchema.safeParse(condition)
      if (!success) return expect(error?.issues.every(({ code }) => code === 'custom')).toBe(true)
      expect(data).toEqual(condition)
    }),
    { numRuns: 200 },
  )
})
