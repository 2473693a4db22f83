import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AddContact } from '../../contract/contacts.ts'
import { exampleId } from '../../contract/ids.ts'
import type { NewContacts } from '../../server/audiences/contact-service.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { live } from '../support/scope.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

let world: World
/** A list of its own for each test. */
let audienceId: string
let counter = 0

beforeAll(async () => {
  world = await createWorld()
  const { db, account, properties } = world
  await properties.create(db, account, { key: 'plan', type: 'string' })
  await properties.create(db, account, { key: 'seats', type: 'number' })
})
afterAll(() => world.end())
beforeEach(async () => {
  const { db, account, audiences, emitted } = world
  audienceId = (await audiences.create(db, live(account), { name: 'News' })).id
  await emitted()
})

const address = () => `batch-${++counter}@example.com`

function addBatch(contacts: AddContact[], rest: Omit<NewContacts, 'contacts'> = {}) {
  return world.contacts.addBatch(world.db, live(world.account), audienceId, { contacts, ...rest })
}

async function outcomes(...given: Parameters<typeof addBatch>) {
  return (await addBatch(...given)).map(({ outcome }) => outcome)
}

async function listed() {
  const { data } = await world.contacts.list(world.db, world.account, audienceId, { limit: 100 })
  return data.map(({ email, firstName, status, properties }) => ({ email, firstName, status, properties })).toReversed()
}

test('a batch of contacts makes new people and contacts, and tells what adding one by one tells', async () => {
  const { db, account, contacts, emitted } = world
  const [one, two] = [address(), address()]
  const results = await addBatch([
    { email: one, firstName: 'Ada', properties: { plan: 'pro', seats: null } },
    { email: two },
  ])
  expect(results.map(({ outcome }) => outcome)).toEqual(['created', 'created'])
  expect(await listed()).toEqual([
    { email: one, firstName: 'Ada', status: 'active', properties: { plan: 'pro' } },
    { email: two, firstName: null, status: 'active', properties: {} },
  ])
  const [first, second] = results.map((result) => (result.outcome === 'refused' ? '' : result.subscriberId))
  expect(await emitted()).toEqual([
    ['subscriber.added', { subscriberId: first, email: one, status: 'active' }],
    ['contact.created', { subscriberId: first, audienceId, email: one, status: 'active' }],
    ['subscriber.added', { subscriberId: second, email: two, status: 'active' }],
    ['contact.created', { subscriberId: second, audienceId, email: two, status: 'active' }],
  ])
  expect(await contacts.get(db, account, { audienceId, subscriberId: String(first) })).toMatchObject({ email: one })
})

test('a batch of contacts leaves known people as they are with skip, and puts them on the list', async () => {
  const { db, account, subscribers, emitted } = world
  const { email } = await subscribers.create(db, live(account), { email: address(), firstName: 'Ada' })
  await emitted()
  const again = { email: email.toUpperCase(), firstName: 'Eve', properties: { plan: 'team' } }
  expect(await outcomes([again])).toEqual(['created'])
  expect((await emitted()).map(([type]) => type)).toEqual(['contact.created'])
  expect(await outcomes([again])).toEqual(['unchanged'])
  expect(await listed()).toEqual([{ email, firstName: 'Ada', status: 'active', properties: {} }])
  expect(await emitted()).toEqual([])
})

test('a batch of contacts changes known people with update, in all their audiences, and only what is given', async () => {
  const { db, account, audiences, contacts, emitted } = world
  const other = await audiences.create(db, live(account), { name: 'Other' })
  const email = address()
  const before = { email, firstName: 'Ada', lastName: 'Lovelace', properties: { plan: 'pro', seats: 1 } }
  const { subscriberId } = await contacts.add(db, live(account), other.id, before)
  await contacts.add(db, live(account), audienceId, { email })
  await emitted()
  const update = { email, firstName: 'Eve', properties: { seats: 2 } }
  expect(await outcomes([update], { conflict: 'update' })).toEqual(['updated'])
  const changes = ['firstName', 'properties']
  const told = (await emitted()).toSorted((one, two) => (JSON.stringify(one) < JSON.stringify(two) ? -1 : 1))
  expect(told).toEqual(
    [other.id, audienceId]
      .toSorted()
      .map((id) => ['contact.updated', { subscriberId, audienceId: id, email, changes }]),
  )
  expect(await contacts.get(db, account, { audienceId: other.id, subscriberId })).toMatchObject({
    firstName: 'Eve',
    lastName: 'Lovelace',
    properties: { plan: 'pro', seats: 2 },
  })
  expect(await outcomes([update], { conflict: 'update' })).toEqual(['unchanged'])
  expect(await emitted()).toEqual([])
})

test('a batch of contacts never makes somebody active who unsubscribed', async () => {
  const { db, account, subscribers, contacts } = world
  const [everything, list] = [address(), address()]
  const { id } = await subscribers.create(db, live(account), { email: everything })
  await subscribers.unsubscribe(db, live(account), id)
  const { subscriberId } = await contacts.add(db, live(account), audienceId, { email: list })
  await contacts.update(db, live(account), { audienceId, subscriberId }, { status: 'unsubscribed' })
  const results = await outcomes([{ email: everything }, { email: list }], { conflict: 'update', status: 'active' })
  expect(results).toEqual(['created', 'unchanged'])
  expect((await listed()).map(({ status }) => status)).toEqual(['unsubscribed', 'unsubscribed'])
})

test('a batch of contacts unsubscribes those who are on the list where that is asked for with update', async () => {
  const { db, account, contacts, emitted } = world
  const email = address()
  const { subscriberId } = await contacts.add(db, live(account), audienceId, { email })
  await emitted()
  expect(await outcomes([{ email }], { conflict: 'skip', status: 'unsubscribed' })).toEqual(['unchanged'])
  const fresh = address()
  const options = { conflict: 'update', status: 'unsubscribed' } as const
  expect(await outcomes([{ email, firstName: 'Ada' }, { email: fresh }], options)).toEqual(['updated', 'created'])
  expect((await listed()).map(({ status }) => status)).toEqual(['unsubscribed', 'unsubscribed'])
  const changes = ['firstName', 'status']
  expect((await emitted()).at(-1)).toEqual(['contact.updated', { subscriberId, audienceId, email, changes }])
})

test('a batch of contacts merges rows with one address: a later one wins with update', async () => {
  const email = address()
  const rows = [{ email, firstName: 'Ada' }, { email: email.toUpperCase(), firstName: 'Eve' }, { email }]
  expect(await outcomes(rows, { conflict: 'update' })).toEqual(['created', 'updated', 'unchanged'])
  const other = address()
  const same = rows.map((row) => ({ ...row, email: other }))
  expect(await outcomes(same, { conflict: 'skip' })).toEqual(['created', 'unchanged', 'unchanged'])
  expect((await listed()).map(({ firstName }) => firstName)).toEqual(['Eve', 'Ada'])
})

test('a batch of contacts refuses single rows by their index and takes the others', async () => {
  const [right, wrong] = [address(), address()]
  const results = await addBatch([
    { email: wrong, properties: { age: 3 } },
    { email: right },
    { email: wrong, properties: { seats: 'two' } },
  ])
  expect(results).toEqual([
    { outcome: 'refused', reason: expect.stringContaining('properties.age is no property') },
    { outcome: 'created', subscriberId: expect.any(String) },
    { outcome: 'refused', reason: 'properties.seats must be a number, or null' },
  ])
  expect((await listed()).map(({ email }) => email)).toEqual([right])
})

test('a batch of contacts refuses a person whose properties together would be too large', async () => {
  const { db, account, properties } = world
  for (let n = 0; n < 40; n++) await properties.create(db, account, { key: `long_${n}`, type: 'string' })
  const part = (from: number) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`long_${from + n}`, 'é'.repeat(300)]))
  const email = address()
  const rows = [
    { email, properties: part(0) },
    { email, properties: part(20) },
  ]
  expect(await outcomes(rows, { conflict: 'update' })).toEqual(['created', 'refused'])
  expect(await outcomes(rows.slice(1), { conflict: 'update' })).toEqual(['refused'])
})

test('a batch of contacts of another account, or to a list that is not there, finds nothing', async () => {
  const { db, stranger, contacts, emitted } = world
  const batch = { contacts: [{ email: address() }] }
  expect(await refusal(contacts.addBatch(db, live(stranger), audienceId, batch))).toBe('not_found')
  expect(await refusal(contacts.addBatch(db, live(stranger), exampleId('audience'), batch))).toBe('not_found')
  expect(await emitted()).toEqual([])
})

test('a batch of contacts with the same people in other orders at once makes each once and ends', async () => {
  const { emitted } = world
  const people = Array.from({ length: 300 }, () => ({ email: address(), firstName: 'Ada' }))
  const orders = [people, people.toReversed(), people.toSorted(() => Math.random() - 0.5), people]
  const results = await Promise.all(
    orders.map((order, n) =>
      outcomes(
        order.map((p) => ({ ...p, firstName: `Ada ${n}` })),
        { conflict: 'update' },
      ),
    ),
  )
  const created = results.flat().filter((outcome) => outcome === 'created')
  expect(created).toHaveLength(300)
  const types = (await emitted()).map(([type]) => type)
  expect(types.filter((type) => type === 'subscriber.added')).toHaveLength(300)
  expect(types.filter((type) => type === 'contact.created')).toHaveLength(300)
})

test('a batch of contacts rolled back leaves nothing', async () => {
  const { db, account, contacts, emitted } = world
  const undone = inTransaction(db, async (trx) => {
    await contacts.addBatch(trx, live(account), audienceId, { contacts: [{ email: address() }] })
    throw new Error('undo')
  })
  await expect(undone).rejects.toThrow('undo')
  expect([await listed(), await emitted()]).toEqual([[], []])
})
