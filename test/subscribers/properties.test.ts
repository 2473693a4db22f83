import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PropertyType, propertyLimits } from '../../contract/contact-properties.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { newId } from '../../server/shared/ids.ts'
import { changedProperties, findProperties } from '../../server/subscribers/properties.ts'
import { clearDeletedProperties } from '../../server/subscribers/property-service.ts'
import { changeProperties, faultOfValue } from '../../server/subscribers/property-values.ts'
import { live } from '../support/scope.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

let world: World
let counter = 0

beforeAll(async () => {
  world = await createWorld()
  const { db, account, properties } = world
  await properties.create(db, account, { key: 'plan', type: 'string', fallback: 'free' })
  await properties.create(db, account, { key: 'seats', type: 'number' })
  await properties.create(db, account, { key: 'vip', type: 'boolean' })
  await properties.create(db, account, { key: 'born', type: 'date' })
})
afterAll(() => world.end())

const address = () => `person-${++counter}@example.com`
const all = { plan: 'pro', seats: 2.5, vip: true, born: '1815-12-10' }

test.each<[PropertyType, (string | number | boolean)[], (string | number | boolean)[]]>([
  ['string', ['', 'pro'], [1, true]],
  ['number', [0, -1.5, 1e300], ['1', true]],
  ['boolean', [true, false], ['true', 0]],
  ['date', ['2024-02-29', '0001-01-01', '9999-12-31'], ['2023-02-29', '0000-01-01', '2023-1-1', '2023-01-01T00:00', 1]],
])('values of a type: %s', (type, right, wrong) => {
  for (const value of [null, ...right]) expect(faultOfValue(type, value)).toBe(null)
  for (const value of wrong) expect(faultOfValue(type, value)).toMatch(/^must be /)
})

test('values of a type may have so many bytes together as a person may have, and no more', () => {
  const declared = Array.from({ length: 40 }, (_, index) => ({
    key: `k${index}`,
    type: 'string' as const,
    fallback: null,
  }))
  const half = Object.fromEntries(declared.slice(0, 20).map(({ key }) => [key, 'x'.repeat(500)]))
  const before = changeProperties({}, half, declared, 'body.properties')
  expect(before.faults).toEqual([])
  const rest = Object.fromEntries(declared.slice(20).map(({ key }) => [key, 'x'.repeat(500)]))
  const after = changeProperties(before.properties, rest, declared, 'body.properties')
  expect(after.faults).toEqual([{ path: 'body.properties', message: expect.stringContaining('16384 bytes') }])
  expect(after.properties).toBe(before.properties)
})

test('the properties of an account are listed by key, and are no others', async () => {
  const { db, account, stranger, properties } = world
  const listed = await properties.list(db, account)
  expect(listed.map(({ key, type, fallback }) => [key, type, fallback])).toEqual([
    ['born', 'date', null],
    ['plan', 'string', 'free'],
    ['seats', 'number', null],
    ['vip', 'boolean', null],
  ])
  expect(await findProperties(db, account)).toEqual(listed.map(({ key, type, fallback }) => ({ key, type, fallback })))
  expect(await properties.list(db, stranger)).toEqual([])
  expect(await refusal(properties.update(db, stranger, 'plan', { fallback: 'none' }))).toBe('not_found')
  expect(await refusal(properties.delete(db, live(stranger), 'plan'))).toBe('not_found')
})

test('the properties of an account have a fallback of their type, which can change and be taken away', async () => {
  const { db, account, properties } = world
  await properties.create(db, account, { key: 'level', type: 'number', fallback: 1 })
  expect(await refusal(properties.update(db, account, 'level', { fallback: 'one' }))).toBe('rule_violation')
  expect(await properties.update(db, account, 'level', { fallback: 2 })).toMatchObject({ fallback: 2 })
  expect(await properties.update(db, account, 'level', {})).toMatchObject({ fallback: 2 })
  expect(await properties.update(db, account, 'level', { fallback: null })).toMatchObject({ fallback: null })
  await properties.delete(db, live(account), 'level')
  expect(await refusal(properties.create(db, account, { key: 'x', type: 'date', fallback: 'now' }))).toBe(
    'rule_violation',
  )
})

test('the properties of an account cannot be declared twice, also at once, and are 100 at most', async () => {
  const { db, stranger, properties } = world
  const declare = (key: string) => refusal(properties.create(db, stranger, { key, type: 'string' }))
  const keys = Array.from({ length: propertyLimits.properties + 3 }, (_, index) => `key_${Math.max(0, index - 1)}`)
  const results = await Promise.all(keys.map(declare))
  expect(results.filter((result) => result === 'not refused')).toHaveLength(propertyLimits.properties)
  expect(new Set(results)).toEqual(new Set(['not refused', 'conflict']))
  expect(await properties.list(db, stranger)).toHaveLength(propertyLimits.properties)
})

test('the properties of a person are kept as they are given, when the person is made and when they are changed', async () => {
  const { db, account, subscribers } = world
  const person = await subscribers.create(db, live(account), { email: address(), properties: { ...all, vip: null } })
  const { vip: _, ...others } = all
  expect(person.properties).toEqual(others)
  const changed = await subscribers.update(db, live(account), person.id, { properties: { seats: null, vip: false } })
  expect(changed.properties).toEqual({ born: all.born, plan: 'pro', vip: false })
  expect(await subscribers.get(db, account, person.id)).toEqual(changed)
  const { data } = await subscribers.list(db, account, { email: person.email, limit: 1 })
  expect(data).toEqual([changed])
})

test('the properties of a person are refused by name when they are not declared or of another type, and then nothing changes', async () => {
  const { db, account, subscribers, emitted } = world
  const email = address()
  await emitted()
  const refused = subscribers.create(db, live(account), { email, properties: { seats: 'two', age: 3, vip: true } })
  await expect(refused).rejects.toMatchObject({
    code: 'rule_violation',
    details: [{ path: 'body.properties.seats' }, { path: 'body.properties.age' }],
  })
  expect((await subscribers.list(db, account, { email, limit: 1 })).data).toEqual([])
  expect(await emitted()).toEqual([])
})

test('the properties of a person change in every audience, which is told once and only when a value really changed', async () => {
  const { db, account, subscribers, audiences, contacts, emitted } = world
  const { id: audienceId } = await audiences.create(db, live(account), { name: 'News' })
  const contact = await contacts.add(db, live(account), audienceId, { email: address(), properties: all })
  expect(contact.properties).toEqual(all)
  const { subscriberId, email } = contact
  await emitted()
  await subscribers.update(db, live(account), subscriberId, { properties: { plan: 'pro', seats: 2.5 } })
  expect(await emitted()).toEqual([])
  const key = { audienceId, subscriberId }
  const patch = { properties: { plan: 'team' }, status: 'unsubscribed' as const, firstName: 'Ada' }
  const changed = await contacts.update(db, live(account), key, patch)
  expect(changed).toMatchObject({ properties: { ...all, plan: 'team' }, status: 'unsubscribed' })
  expect(await emitted()).toEqual([
    ['contact.updated', { subscriberId, audienceId, email, changes: ['firstName', 'properties', 'status'] }],
  ])
  expect(await contacts.get(db, account, key)).toEqual(changed)
  expect((await contacts.list(db, account, audienceId, { limit: 5 })).data).toEqual([changed])
})

test('the properties of a known person stay when they are added to an audience', async () => {
  const { db, account, subscribers, audiences, contacts } = world
  const { id: audienceId } = await audiences.create(db, live(account), { name: 'News' })
  const { email } = await subscribers.create(db, live(account), { email: address(), properties: { plan: 'pro' } })
  const contact = await contacts.add(db, live(account), audienceId, { email, properties: { plan: 'team' } })
  expect(contact.properties).toEqual({ plan: 'pro' })
})

test('a deleted property is shown no more, has no values left, and can be declared anew', async () => {
  const { db, account, subscribers, properties } = world
  await properties.create(db, account, { key: 'gone', type: 'string' })
  const given = { gone: 'x', plan: 'pro' }
  const person = await subscribers.create(db, live(account), { email: address(), properties: given })
  await properties.delete(db, live(account), 'gone')
  expect(await refusal(properties.delete(db, live(account), 'gone'))).toBe('not_found')
  expect((await subscribers.get(db, account, person.id)).properties).toEqual({ plan: 'pro' })
  await properties.create(db, account, { key: 'gone', type: 'number' })
  expect((await subscribers.get(db, account, person.id)).properties).toEqual({ plan: 'pro' })
  await properties.delete(db, live(account), 'gone')
})

test('a deleted property is taken from more people than one statement looks at, piece by piece, and from no other account', async () => {
  const { db, properties, clock } = world
  const [one, other] = [newId('account', clock.now()), newId('account', clock.now())]
  for (const id of [one, other]) {
    await db.insertInto('accounts').values({ id, name: 'Large', plan: 'scale' }).execute()
    await properties.create(db, id, { key: 'plan', type: 'string' })
    const count = id === one ? 5_000 : 10
    await sql`
        INSERT INTO subscribers (id, account_id, email, email_key, properties)
        SELECT 'sub_' || ${id} || n, ${id}, n || '@example.com', n || '@example.com', '{"plan": "pro", "kept": 1}'
        FROM generate_series(1, ${count}) AS n
      `.execute(db)
  }
  const withPlan = async (id: string) => {
    const { rows } = await sql<{ count: number }>`
        SELECT count(*)::int AS count FROM subscribers WHERE account_id = ${id} AND properties ? 'plan'
      `.execute(db)
    return rows[0]?.count
  }
  await properties.delete(db, live(one), 'plan')
  expect(await withPlan(one)).toBe(3_000)
  expect(await properties.list(db, one)).toEqual([])
  await expect(properties.create(db, one, { key: 'plan', type: 'number' })).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('try again'),
  })
  await clearDeletedProperties({ db })
  expect([await withPlan(one), await withPlan(other)]).toEqual([0, 10])
  await properties.create(db, one, { key: 'plan', type: 'number' })
})

test('a deleted property gets no value from a request that was under way', async () => {
  const { db, account, properties, subscribers } = world
  await properties.create(db, account, { key: 'late', type: 'string' })
  const { id } = await subscribers.create(db, live(account), { email: address() })
  let deleting: Promise<void> | undefined
  await inTransaction(db, async (trx) => {
    await changedProperties(trx, account, { before: {}, change: { late: 'x' } })
    // Waits for this transaction.
    deleting = properties.delete(db, live(account), 'late')
    await subscribers.update(trx, live(account), id, { properties: { late: 'x' } })
  })
  await deleting
  const { rows } = await sql`SELECT FROM subscribers WHERE id = ${id} AND properties ? 'late'`.execute(db)
  expect(rows).toEqual([])
})
