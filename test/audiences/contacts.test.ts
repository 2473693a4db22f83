import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { live } from '../support/scope.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

let world: World
/** A list of its own for each test. */
let audienceId: string
let counter = 0

beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world.end())
beforeEach(async () => {
  const { db, account, audiences, emitted } = world
  audienceId = (await audiences.create(db, live(account), { name: 'News' })).id
  await emitted()
})

function address(): string {
  return `contact-${++counter}@example.com`
}

async function add(email = address()) {
  const { db, account, contacts, emitted } = world
  const contact = await contacts.add(db, live(account), audienceId, { email, firstName: 'Ada' })
  await emitted()
  return { contact, key: { audienceId, subscriberId: contact.subscriberId } }
}

test('adding a contact makes the person if they are new, and tells both', async () => {
  const { db, account, contacts, subscribers, emitted } = world
  const email = address()
  const contact = await contacts.add(db, live(account), audienceId, { email, firstName: 'Ada' })
  const { subscriberId } = contact
  expect(contact).toMatchObject({ audienceId, email, firstName: 'Ada', lastName: null, status: 'active' })
  expect(await contacts.get(db, account, { audienceId, subscriberId })).toEqual(contact)
  expect(await subscribers.get(db, account, subscriberId)).toMatchObject({ email, firstName: 'Ada' })
  expect(await emitted()).toEqual([
    ['subscriber.added', { subscriberId, email, status: 'active' }],
    ['contact.created', { subscriberId, audienceId, email, status: 'active' }],
  ])
})

test('adding a contact leaves the address and the names of a known person alone', async () => {
  const { db, account, contacts, subscribers, emitted } = world
  const person = await subscribers.create(db, live(account), { email: address(), firstName: 'Ada' })
  await emitted()
  const email = person.email.toUpperCase()
  const contact = await contacts.add(db, live(account), audienceId, { email, firstName: 'Eve', lastName: 'Eve' })
  expect(contact).toMatchObject({ subscriberId: person.id, email: person.email, firstName: 'Ada', lastName: null })
  expect((await emitted()).map(([type]) => type)).toEqual(['contact.created'])
  expect(await subscribers.get(db, account, person.id)).toEqual(person)
})

test('adding a person who unsubscribed from everything makes an unsubscribed contact', async () => {
  const { db, account, contacts, subscribers, emitted } = world
  const person = await subscribers.create(db, live(account), { email: address() })
  await subscribers.unsubscribe(db, live(account), person.id)
  await emitted()
  const contact = await contacts.add(db, live(account), audienceId, { email: person.email })
  expect(contact.status).toBe('unsubscribed')
  expect(await emitted()).toEqual([
    ['contact.created', { subscriberId: person.id, audienceId, email: person.email, status: 'unsubscribed' }],
  ])
})

test('adding a person who is on the list already is refused', async () => {
  const { db, account, contacts, emitted } = world
  const { contact } = await add()
  expect(await refusal(contacts.add(db, live(account), audienceId, { email: contact.email }))).toBe('conflict')
  expect(await emitted()).toEqual([])
})

test('adding a contact many times at once makes one person and one contact', async () => {
  const { db, account, contacts, emitted } = world
  const email = address()
  const results = await Promise.all(
    Array.from({ length: 8 }, () => refusal(contacts.add(db, live(account), audienceId, { email }))),
  )
  expect(results.toSorted()).toEqual([...Array.from({ length: 7 }, () => 'conflict'), 'not refused'])
  expect((await emitted()).map(([type]) => type)).toEqual(['subscriber.added', 'contact.created'])
})

test('adding a contact to two lists at once makes one person with two contacts', async () => {
  const { db, account, audiences, contacts, emitted } = world
  const other = await audiences.create(db, live(account), { name: 'Other' })
  const email = address()
  const [one, two] = await Promise.all([
    contacts.add(db, live(account), audienceId, { email }),
    contacts.add(db, live(account), other.id, { email }),
  ])
  expect(one.subscriberId).toBe(two.subscriberId)
  const types = (await emitted()).map(([type]) => type)
  expect(types.toSorted()).toEqual(['contact.created', 'contact.created', 'subscriber.added'])
})

test('adding a contact, rolled back, leaves neither person nor contact nor event', async () => {
  const { db, account, contacts, subscribers, emitted } = world
  const email = address()
  const undone = inTransaction(db, async (trx) => {
    await contacts.add(trx, live(account), audienceId, { email })
    throw new Error('undo')
  })
  await expect(undone).rejects.toThrow('undo')
  expect((await subscribers.list(db, account, { limit: 1, email })).data).toEqual([])
  expect((await contacts.list(db, account, audienceId, { limit: 1 })).data).toEqual([])
  expect(await emitted()).toEqual([])
})

test('changing a contact by name changes the person everywhere, and its status only here, in one event a list', async () => {
  const { db, account, audiences, contacts, subscribers, emitted } = world
  const { contact, key } = await add()
  const { email, subscriberId } = contact
  const other = await audiences.create(db, live(account), { name: 'Other' })
  await contacts.add(db, live(account), other.id, { email })
  await emitted()
  world.moveClock(1_000)
  const changed = await contacts.update(db, live(account), key, { firstName: 'Augusta', status: 'unsubscribed' })
  expect(changed).toMatchObject({ firstName: 'Augusta', status: 'unsubscribed', createdAt: contact.createdAt })
  expect(changed.updatedAt).toBe(world.clock.now().toISOString())
  expect(await emitted()).toEqual([
    ['contact.updated', { subscriberId, audienceId, email, changes: ['firstName', 'status'] }],
    ['contact.updated', { subscriberId, audienceId: other.id, email, changes: ['firstName'] }],
  ])
  const elsewhere = await contacts.get(db, account, { audienceId: other.id, subscriberId })
  expect(elsewhere).toMatchObject({ firstName: 'Augusta', status: 'active' })
  expect(await subscribers.get(db, account, subscriberId)).toMatchObject({ firstName: 'Augusta', status: 'active' })
})

test('changing a contact by its status alone leaves the other lists alone, and back again', async () => {
  const { db, account, audiences, contacts, emitted } = world
  const { contact, key } = await add()
  const other = await audiences.create(db, live(account), { name: 'Other' })
  await contacts.add(db, live(account), other.id, { email: contact.email })
  await emitted()
  await contacts.update(db, live(account), key, { status: 'unsubscribed' })
  await contacts.update(db, live(account), key, { status: 'active' })
  const told = ['contact.updated', { ...key, email: contact.email, changes: ['status'] }]
  expect(await emitted()).toEqual([told, told])
})

test('changing a contact to what it is already changes and tells nothing', async () => {
  const { db, account, contacts, emitted } = world
  const { contact, key } = await add()
  world.moveClock(1_000)
  expect(await contacts.update(db, live(account), key, { firstName: 'Ada', lastName: null, status: 'active' })).toEqual(
    contact,
  )
  expect(await contacts.update(db, live(account), key, {})).toEqual(contact)
  expect(await emitted()).toEqual([])
})

test('changing a contact to active is refused while the person is unsubscribed from everything', async () => {
  const { db, account, contacts, subscribers, emitted } = world
  const { key } = await add()
  await subscribers.unsubscribe(db, live(account), key.subscriberId)
  await emitted()
  const resubscribe = { status: 'active', firstName: 'Augusta' } as const
  expect(await refusal(contacts.update(db, live(account), key, resubscribe))).toBe('subscriber_unsubscribed')
  expect(await contacts.get(db, account, key)).toMatchObject({ firstName: 'Ada', status: 'unsubscribed' })
  expect(await emitted()).toEqual([])

  await subscribers.update(db, live(account), key.subscriberId, { status: 'active' })
  expect(await contacts.update(db, live(account), key, resubscribe)).toMatchObject({ status: 'active' })
})

test('changing a contact while the person unsubscribes never ends active', async () => {
  const { db, account, contacts, subscribers } = world
  for (let round = 0; round < 10; round++) {
    const { key } = await add()
    await contacts.update(db, live(account), key, { status: 'unsubscribed' })
    const [, result] = await Promise.all([
      subscribers.unsubscribe(db, live(account), key.subscriberId),
      refusal(contacts.update(db, live(account), key, { status: 'active' })),
    ])
    expect(['not refused', 'subscriber_unsubscribed']).toContain(result)
    expect((await contacts.get(db, account, key)).status).toBe('unsubscribed')
  }
})

test('removing a contact tells it and keeps the person', async () => {
  const { db, account, contacts, subscribers, emitted } = world
  const { key } = await add()
  const results = await Promise.all([1, 2, 3].map(() => refusal(contacts.remove(db, live(account), key))))
  expect(results.toSorted()).toEqual(['not refused', 'not_found', 'not_found'])
  expect(await emitted()).toEqual([['contact.deleted', key]])
  expect(await refusal(contacts.get(db, account, key))).toBe('not_found')
  expect(await subscribers.get(db, account, key.subscriberId)).toMatchObject({ status: 'active' })
})

test('the list of contacts is newest first and can be limited to a status', async () => {
  const { db, account, contacts } = world
  const first = await add()
  const second = await add()
  await contacts.update(db, live(account), first.key, { status: 'unsubscribed' })
  const all = await contacts.list(db, account, audienceId, { limit: 10 })
  expect(all.data.map(({ subscriberId }) => subscriberId)).toEqual([second.key.subscriberId, first.key.subscriberId])
  const active = await contacts.list(db, account, audienceId, { limit: 10, status: 'active' })
  expect(active).toEqual({ data: [second.contact], nextCursor: null })
})

test('the audiences of a person are listed with their names, newest audiences first, page by page', async () => {
  const { db, account, audiences, contacts } = world
  const { contact, key } = await add()
  const { subscriberId } = key
  await add()
  const others: string[] = []
  const times: string[] = []
  for (const name of ['Offers', 'Events']) {
    const { id } = await audiences.create(db, live(account), { name })
    times.unshift((await contacts.add(db, live(account), id, { email: contact.email })).createdAt)
    others.unshift(id)
  }
  await contacts.update(db, live(account), key, { status: 'unsubscribed' })
  const { data, nextCursor } = await contacts.listOfSubscriber(db, account, subscriberId, { limit: 10 })
  expect(data.map((one) => [one.audienceId, one.audienceName, one.status])).toEqual([
    [others[0], 'Events', 'active'],
    [others[1], 'Offers', 'active'],
    [audienceId, 'News', 'unsubscribed'],
  ])
  expect(data[0]).toMatchObject({ createdAt: times[0], updatedAt: times[0] })
  expect(nextCursor).toBe(null)

  const first = await contacts.listOfSubscriber(db, account, subscriberId, { limit: 2 })
  expect(first.data).toEqual(data.slice(0, 2))
  const cursor = first.nextCursor ?? ''
  expect(await contacts.listOfSubscriber(db, account, subscriberId, { limit: 2, cursor })).toEqual({
    data: data.slice(2),
    nextCursor: null,
  })
})

test('the audiences of a person are none for a person who is in none', async () => {
  const { db, account, subscribers, contacts } = world
  const { id } = await subscribers.create(db, live(account), { email: address() })
  expect(await contacts.listOfSubscriber(db, account, id, { limit: 10 })).toEqual({ data: [], nextCursor: null })
})

test('the audiences of a person are read by an index and no further than a page, however many there are, without statistics', async () => {
  const { db, account, contacts } = world
  const { key } = await add()
  await sql`
      INSERT INTO audiences (id, account_id, name, created_at, updated_at)
      SELECT 'aud_many' || n, ${account}, 'Many', now(), now() FROM generate_series(1, 2000) AS n
    `.execute(db)
  await sql`
      INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
      SELECT id, ${key.subscriberId}, ${account}, 'active', now(), now() FROM audiences WHERE id LIKE 'aud_many%'
    `.execute(db)
  const plans: string[] = []
  const explained = db.withPlugin({
    transformQuery: ({ node }) =>
      node.kind === 'RawNode'
        ? { ...node, sqlFragments: [`EXPLAIN ANALYZE ${node.sqlFragments[0]}`, ...node.sqlFragments.slice(1)] }
        : node,
    async transformResult({ result }) {
      plans.push(...result.rows.map((row) => String(row['QUERY PLAN'])))
      return { ...result, rows: [] }
    },
  })
  expect(await refusal(contacts.listOfSubscriber(explained, account, key.subscriberId, { limit: 10 }))).toBe(
    'not_found',
  )
  const plan = plans.join('\n')
  expect(plan).toMatch(/Index Scan Backward using contacts_by_subscriber .*rows=11/)
  expect(plan).not.toMatch(/Seq Scan/)
})

test("another account's contact does not exist", async () => {
  const { db, account, stranger, audiences, contacts, emitted } = world
  const { contact, key } = await add()
  const theirs = await audiences.create(db, live(stranger), { name: 'Theirs' })
  const attempts = [
    contacts.add(db, live(stranger), audienceId, { email: address() }),
    contacts.list(db, stranger, audienceId, { limit: 1 }),
    contacts.listOfSubscriber(db, stranger, key.subscriberId, { limit: 1 }),
    contacts.listOfSubscriber(db, account, exampleId('subscriber'), { limit: 1 }),
    contacts.get(db, stranger, key),
    contacts.update(db, live(stranger), key, { firstName: 'Mallory' }),
    contacts.remove(db, live(stranger), key),
    contacts.get(db, stranger, { ...key, audienceId: theirs.id }),
    contacts.update(db, live(stranger), { ...key, audienceId: theirs.id }, { status: 'unsubscribed' }),
    contacts.get(db, account, { ...key, audienceId: exampleId('audience') }),
  ]
  expect(await Promise.all(attempts.map(refusal))).toEqual(attempts.map(() => 'not_found'))
  expect(await contacts.get(db, account, key)).toEqual(contact)
  expect(await emitted()).toEqual([])
})
