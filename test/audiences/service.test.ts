import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { newId } from '../../server/shared/ids.ts'
import { live } from '../support/scope.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

let world: World

beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world.end())
beforeEach(async () => {
  await world.emitted()
})

/** Puts many people on a list, without events. Answers their ids in order. */
async function fill(audienceId: string, count: number): Promise<string[]> {
  const { db, account, clock } = world
  const ids = Array.from({ length: count }, () => newId('subscriber', clock.now()))
  await sql`
    WITH person AS (
      INSERT INTO subscribers (id, account_id, email, email_key)
      SELECT id, ${account}, id || '@example.com', id || '@example.com' FROM unnest(${ids}::text[]) AS p (id)
    )
    INSERT INTO contacts (audience_id, subscriber_id, account_id, status)
    SELECT ${audienceId}, id, ${account}, 'active' FROM unnest(${ids}::text[]) AS p (id)
  `.execute(db)
  return ids
}

test('an audience is created, read, changed and listed', async () => {
  const { db, account, audiences, emitted } = world
  const created = await audiences.create(db, live(account), { name: 'Newsletter' })
  expect(created).toMatchObject({ name: 'Newsletter', description: null })
  expect(await audiences.get(db, account, created.id)).toEqual(created)

  world.moveClock(1_000)
  const changed = await audiences.update(db, live(account), created.id, { description: 'Monthly' })
  expect(changed).toMatchObject({ name: 'Newsletter', description: 'Monthly', createdAt: created.createdAt })
  expect(changed.updatedAt > created.updatedAt).toBe(true)
  world.moveClock(1_000)
  expect(await audiences.update(db, live(account), created.id, { name: 'Newsletter', description: 'Monthly' })).toEqual(
    changed,
  )
  expect(await audiences.update(db, live(account), created.id, { description: null })).toMatchObject({
    description: null,
  })

  const second = await audiences.create(db, live(account), { name: 'Second', description: 'Another' })
  const { data } = await audiences.list(db, account, { limit: 2 })
  expect(data.map(({ id }) => id)).toEqual([second.id, created.id])
  expect(await emitted()).toEqual([])
})

test('deleting an audience tells of each contact, however many, and keeps the people', async () => {
  const { db, account, audiences, subscribers, emitted } = world
  const audience = await audiences.create(db, live(account), { name: 'Large' })
  const people = await fill(audience.id, 2_500)
  await audiences.delete(db, live(account), audience.id)
  expect(await emitted()).toEqual(
    people.map((subscriberId) => ['contact.deleted', { subscriberId, audienceId: audience.id }]),
  )
  expect(await refusal(audiences.get(db, account, audience.id))).toBe('not_found')
  expect(await subscribers.get(db, account, people[0] ?? '')).toMatchObject({ status: 'active' })
})

test('deleting an audience, rolled back, leaves the list as it was and tells nothing', async () => {
  const { db, account, audiences, contacts, emitted } = world
  const audience = await audiences.create(db, live(account), { name: 'Kept' })
  await fill(audience.id, 3)
  const undone = inTransaction(db, async (trx) => {
    await audiences.delete(trx, live(account), audience.id)
    throw new Error('undo')
  })
  await expect(undone).rejects.toThrow('undo')
  expect((await contacts.list(db, account, audience.id, { limit: 10 })).data).toHaveLength(3)
  expect(await emitted()).toEqual([])
})

test('deleting an audience while people are added and unsubscribe tells of every one who was on it', async () => {
  const { db, account, audiences, contacts, subscribers, emitted } = world
  for (let round = 0; round < 10; round++) {
    const audience = await audiences.create(db, live(account), { name: 'Race' })
    const people = await fill(audience.id, 5)
    const email = `late-${round}@example.com`
    const results = await Promise.all([
      refusal(audiences.delete(db, live(account), audience.id)),
      refusal(contacts.add(db, live(account), audience.id, { email })),
      ...people.map((id) => refusal(subscribers.unsubscribe(db, live(account), id))),
    ])
    expect(['not refused', 'not_found']).toEqual(expect.arrayContaining(results))
    expect(results[0]).toBe('not refused')
    const on = new Set<string>()
    for (const [type, data] of await emitted()) {
      const { subscriberId } = data as { subscriberId: string }
      if (type === 'contact.created') on.add(subscriberId)
      if (type === 'contact.deleted') expect(people.includes(subscriberId) || on.delete(subscriberId)).toBe(true)
    }
    expect([...on]).toEqual([])
  }
})

test("another account's audience does not exist", async () => {
  const { db, account, stranger, audiences } = world
  const audience = await audiences.create(db, live(account), { name: 'Ours' })
  const attempts = [
    audiences.get(db, stranger, audience.id),
    audiences.update(db, live(stranger), audience.id, { name: 'Theirs' }),
    audiences.delete(db, live(stranger), audience.id),
  ]
  expect(await Promise.all(attempts.map(refusal))).toEqual(attempts.map(() => 'not_found'))
  expect((await audiences.list(db, stranger, { limit: 10 })).data).toEqual([])
  expect(await audiences.get(db, account, audience.id)).toEqual(audience)
})
