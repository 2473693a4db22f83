import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { live } from '../support/scope.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

let world: World
let counter = 0

beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world.end())
beforeEach(async () => {
  await world.emitted()
})

/** An address nobody has yet. */
function address(): string {
  return `person-${++counter}@example.com`
}

/** A person on `lists` new lists, whose events are not told any more. */
async function personOn(lists: number) {
  const { db, account, subscribers, audiences, contacts, emitted } = world
  const person = await subscribers.create(db, live(account), { email: address(), firstName: 'Ada' })
  const audienceIds: string[] = []
  for (let list = 0; list < lists; list++) {
    const audience = await audiences.create(db, live(account), { name: `List ${list}` })
    await contacts.add(db, live(account), audience.id, { email: person.email })
    audienceIds.push(audience.id)
  }
  await emitted()
  return { person, audienceIds }
}

describe('adding a person', () => {
  test('adding a person stores them and tells it', async () => {
    const { db, account, subscribers, emitted } = world
    const email = address()
    const added = await subscribers.create(db, live(account), { email, lastName: 'Lovelace' })
    expect(added).toMatchObject({ email, firstName: null, lastName: 'Lovelace', status: 'active' })
    expect(await subscribers.get(db, account, added.id)).toEqual(added)
    expect(await emitted()).toEqual([['subscriber.added', { subscriberId: added.id, email, status: 'active' }]])
  })

  test('an address is taken in every letter case, but only in its own account', async () => {
    const { db, account, stranger, subscribers, emitted } = world
    const email = address()
    await subscribers.create(db, live(account), { email })
    await emitted()
    expect(await refusal(subscribers.create(db, live(account), { email: email.toUpperCase() }))).toBe('conflict')
    expect(await emitted()).toEqual([])
    expect(await subscribers.create(db, live(stranger), { email })).toMatchObject({ email })
  })

  test('one of many people added at once with one address is added, and the others are told of it', async () => {
    const { db, account, subscribers, emitted } = world
    const email = address()
    const results = await Promise.all(
      Array.from({ length: 8 }, () => refusal(subscribers.create(db, live(account), { email }))),
    )
    expect(results.toSorted()).toEqual([...Array.from({ length: 7 }, () => 'conflict'), 'not refused'])
    expect(await emitted()).toHaveLength(1)
  })

  test('a refusal leaves the transaction around it usable', async () => {
    const { db, account, subscribers } = world
    const email = address()
    await subscribers.create(db, live(account), { email })
    const answer = await inTransaction(db, async (trx) => [
      await refusal(subscribers.create(trx, live(account), { email })),
      (await subscribers.create(trx, live(account), { email: address() })).status,
    ])
    expect(answer).toEqual(['conflict', 'active'])
  })

  test('adding a person, rolled back, leaves neither the person nor the event', async () => {
    const { db, account, subscribers, emitted } = world
    const email = address()
    const undone = inTransaction(db, async (trx) => {
      await subscribers.create(trx, live(account), { email })
      throw new Error('undo')
    })
    await expect(undone).rejects.toThrow('undo')
    expect((await subscribers.list(db, account, { limit: 1, email })).data).toEqual([])
    expect(await emitted()).toEqual([])
    expect(
      await db.selectFrom('outbox_rows').select('event_id').where('account_id', '=', account).execute(),
    ).toHaveLength((await db.selectFrom('events').select('id').where('account_id', '=', account).execute()).length)
  })
})

describe('changing a person', () => {
  test('changing a person is told to each of their audiences with what really changed', async () => {
    const { db, account, subscribers, contacts, emitted } = world
    const { person, audienceIds } = await personOn(2)
    const email = person.email.toUpperCase()
    world.moveClock(1_000)
    const changed = await subscribers.update(db, live(account), person.id, {
      email,
      firstName: 'Ada',
      lastName: 'Byron',
    })
    expect(changed).toMatchObject({ email, firstName: 'Ada', lastName: 'Byron', createdAt: person.createdAt })
    expect(changed.updatedAt > person.updatedAt).toBe(true)
    expect(await emitted()).toEqual(
      audienceIds.map((audienceId) => [
        'contact.updated',
        { subscriberId: person.id, audienceId, email, changes: ['email', 'lastName'] },
      ]),
    )
    const [audienceId = ''] = audienceIds
    const contact = await contacts.get(db, account, { audienceId, subscriberId: person.id })
    expect(contact).toMatchObject({ email, lastName: 'Byron', status: 'active', updatedAt: changed.updatedAt })
  })

  test('changing a person to what they are already changes and tells nothing', async () => {
    const { db, account, subscribers, emitted } = world
    const { person } = await personOn(1)
    world.moveClock(1_000)
    const { email, firstName, lastName, status } = person
    expect(await subscribers.update(db, live(account), person.id, { email, firstName, lastName, status })).toEqual(
      person,
    )
    expect(await subscribers.update(db, live(account), person.id, {})).toEqual(person)
    expect(await emitted()).toEqual([])
  })

  test("another person's address is refused, and nothing is kept", async () => {
    const { db, account, subscribers, emitted } = world
    const { person } = await personOn(1)
    const other = await subscribers.create(db, live(account), { email: address() })
    await emitted()
    const change = { email: other.email.toUpperCase(), firstName: 'Augusta' }
    expect(await refusal(subscribers.update(db, live(account), person.id, change))).toBe('conflict')
    expect(await subscribers.get(db, account, person.id)).toEqual(person)
    expect(await emitted()).toEqual([])
  })

  test('two changes at once are both kept, and each tells its own', async () => {
    const { db, account, subscribers, emitted } = world
    const { person } = await personOn(1)
    await Promise.all([
      subscribers.update(db, live(account), person.id, { firstName: 'Augusta' }),
      subscribers.update(db, live(account), person.id, { lastName: 'Byron' }),
    ])
    expect(await subscribers.get(db, account, person.id)).toMatchObject({ firstName: 'Augusta', lastName: 'Byron' })
    const changes = (await emitted()).map(([, data]) => (data as { changes: string[] }).changes)
    expect(changes.toSorted()).toEqual([['firstName'], ['lastName']])
  })

  test('the same change twice at once is told once', async () => {
    const { db, account, subscribers, emitted } = world
    const { person } = await personOn(1)
    const rename = () => subscribers.update(db, live(account), person.id, { firstName: 'Augusta' })
    await Promise.all([rename(), rename(), rename()])
    expect(await emitted()).toHaveLength(1)
  })
})

test('unsubscribing reaches every list the person was active on, once', async () => {
  const { db, account, subscribers, contacts, emitted } = world
  const { person, audienceIds } = await personOn(3)
  const [left = '', ...active] = audienceIds
  await contacts.update(db, live(account), { audienceId: left, subscriberId: person.id }, { status: 'unsubscribed' })
  await emitted()

  expect(await subscribers.unsubscribe(db, live(account), person.id)).toMatchObject({ status: 'unsubscribed' })
  expect(await emitted()).toEqual([
    ['subscriber.unsubscribed', { subscriberId: person.id, email: person.email, status: 'unsubscribed' }],
    ...active.map((audienceId) => [
      'contact.updated',
      { subscriberId: person.id, audienceId, email: person.email, changes: ['status'] },
    ]),
  ])
  for (const audienceId of audienceIds) {
    const contact = await contacts.get(db, account, { audienceId, subscriberId: person.id })
    expect(contact.status).toBe('unsubscribed')
  }

  await subscribers.unsubscribe(db, live(account), person.id)
  expect(await emitted()).toEqual([])
})

test('unsubscribing by a change of the status is the same, and one event tells all that changed in an audience', async () => {
  const { db, account, subscribers, emitted } = world
  const { person, audienceIds } = await personOn(1)
  await subscribers.update(db, live(account), person.id, { status: 'unsubscribed', firstName: null })
  expect(await emitted()).toEqual([
    ['subscriber.unsubscribed', { subscriberId: person.id, email: person.email, status: 'unsubscribed' }],
    [
      'contact.updated',
      { subscriberId: person.id, audienceId: audienceIds[0], email: person.email, changes: ['firstName', 'status'] },
    ],
  ])
})

test('unsubscribing is undone for the person by the status "active"; their contacts stay as they are', async () => {
  const { db, account, subscribers, contacts, emitted } = world
  const { person, audienceIds } = await personOn(1)
  await subscribers.unsubscribe(db, live(account), person.id)
  await emitted()
  expect(await subscribers.update(db, live(account), person.id, { status: 'active' })).toMatchObject({
    status: 'active',
  })
  expect(await emitted()).toEqual([])
  const contact = await contacts.get(db, account, { audienceId: audienceIds[0] ?? '', subscriberId: person.id })
  expect(contact.status).toBe('unsubscribed')
})

test('many unsubscriptions of a person at once are told once', async () => {
  const { db, account, subscribers, emitted } = world
  const { person } = await personOn(1)
  await Promise.all(Array.from({ length: 5 }, () => subscribers.unsubscribe(db, live(account), person.id)))
  expect((await emitted()).map(([type]) => type)).toEqual(['subscriber.unsubscribed', 'contact.updated'])
})

test('unsubscribing while the person is added to a list never leaves an active contact behind', async () => {
  const { db, account, subscribers, audiences, contacts } = world
  for (let round = 0; round < 10; round++) {
    const { person } = await personOn(0)
    const audience = await audiences.create(db, live(account), { name: 'Race' })
    await Promise.all([
      contacts.add(db, live(account), audience.id, { email: person.email }),
      subscribers.unsubscribe(db, live(account), person.id),
    ])
    const contact = await contacts.get(db, account, { audienceId: audience.id, subscriberId: person.id })
    expect(contact.status).toBe('unsubscribed')
  }
})

test('deleting a person takes them off every list, then removes them', async () => {
  const { db, account, subscribers, contacts, emitted } = world
  const { person, audienceIds } = await personOn(2)
  await subscribers.delete(db, live(account), person.id)
  expect(await emitted()).toEqual([
    ...audienceIds.map((audienceId) => ['contact.deleted', { subscriberId: person.id, audienceId }]),
    ['subscriber.removed', { subscriberId: person.id, email: person.email, status: 'active' }],
  ])
  expect(await refusal(subscribers.get(db, account, person.id))).toBe('not_found')
  expect(await refusal(subscribers.delete(db, live(account), person.id))).toBe('not_found')
  for (const audienceId of audienceIds) {
    expect((await contacts.list(db, account, audienceId, { limit: 10 })).data).toEqual([])
  }
  expect(await subscribers.create(db, live(account), { email: person.email })).not.toMatchObject({ id: person.id })
})

test('deleting a person while others add and change them ends without a fault and without a trace', async () => {
  const { db, account, subscribers, contacts, emitted } = world
  for (let round = 0; round < 10; round++) {
    const { person, audienceIds } = await personOn(2)
    const subscriberId = person.id
    const [first = '', second = ''] = audienceIds
    const results = await Promise.all([
      refusal(subscribers.delete(db, live(account), subscriberId)),
      refusal(subscribers.update(db, live(account), subscriberId, { firstName: 'Augusta' })),
      refusal(contacts.update(db, live(account), { audienceId: first, subscriberId }, { status: 'unsubscribed' })),
      refusal(contacts.remove(db, live(account), { audienceId: second, subscriberId })),
    ])
    expect(results[0]).toBe('not refused')
    expect(['not refused', 'not_found']).toEqual(expect.arrayContaining(results))
    const types = (await emitted()).map(([type]) => type)
    expect(types.at(-1)).toBe('subscriber.removed')
    expect(types.filter((type) => type === 'contact.deleted')).toHaveLength(2)
  }
})

test('lists are newest first and can be limited to an address or a status', async () => {
  const { db, account, subscribers } = world
  const first = await subscribers.create(db, live(account), { email: address() })
  const second = await subscribers.create(db, live(account), { email: address() })
  await subscribers.unsubscribe(db, live(account), first.id)
  const newest = await subscribers.list(db, account, { limit: 2 })
  expect(newest.data.map(({ id }) => id)).toEqual([second.id, first.id])
  const byAddress = await subscribers.list(db, account, { limit: 2, email: second.email.toUpperCase() })
  expect(byAddress).toEqual({ data: [second], nextCursor: null })
  const gone = await subscribers.list(db, account, { limit: 1, status: 'unsubscribed' })
  expect(gone.data.map(({ id }) => id)).toEqual([first.id])
})

test('a person of another account does not exist', async () => {
  const { db, stranger, subscribers, emitted } = world
  const { person } = await personOn(1)
  const attempts = [
    subscribers.get(db, stranger, person.id),
    subscribers.update(db, live(stranger), person.id, { firstName: 'Mallory' }),
    subscribers.unsubscribe(db, live(stranger), person.id),
    subscribers.delete(db, live(stranger), person.id),
    subscribers.get(db, stranger, exampleId('subscriber')),
  ]
  expect(await Promise.all(attempts.map(refusal))).toEqual(attempts.map(() => 'not_found'))
  expect(await emitted()).toEqual([])
})
