import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EventTypeName, eventTypeNames, eventTypes } from '../../contract/event-types.ts'
import { type EventListQuery, searchedKinds } from '../../contract/events.ts'
import { exampleId, type IdKind, idPrefixes } from '../../contract/ids.ts'
import { contract } from '../../contract/index.ts'
import { inTransaction } from '../../server/database/connection.ts'
import type { NewEvent } from '../../server/outbox/append.ts'
import { newId } from '../../server/shared/ids.ts'
import { live, testing } from '../support/scope.ts'
import { createWorld, type World } from '../support/worlds/audiences.ts'

let world: World
/** One event of each type, each about objects of its own. */
let made: Map<EventTypeName, { id: string; data: Record<string, unknown> }>

beforeAll(async () => {
  world = await createWorld()
  made = new Map()
  for (const [type, { example }] of eventTypes) {
    const data = Object.fromEntries(Object.entries(example).map(([name, value]) => [name, ownId(name) ?? value]))
    made.set(type, { id: await append({ type, data } as NewEvent), data })
  }
  // Later events of each type, about other objects.
  for (const [type, { example }] of eventTypes) await append({ type, data: example } as NewEvent)
})
afterAll(() => world.end())

const kindOf = (field: string) => Object.keys(idPrefixes).find((kind) => field === `${kind}Id`) as IdKind | undefined

/** A new id for a field that holds one. */
function ownId(field: string): string | undefined {
  const kind = kindOf(field)
  return kind === undefined ? undefined : newId(kind, world.clock.now())
}

async function append(event: NewEvent): Promise<string> {
  const [id = ''] = await inTransaction(world.db, (trx) => world.outbox.append(trx, live(world.account), [event]))
  return id
}

async function search(query: Partial<EventListQuery>, scope = live(world.account)): Promise<string[]> {
  const page = await world.events.list(world.db, scope, { limit: 20, ...query })
  return page.data.map(({ id }) => String(id))
}

const madeOf = (type: EventTypeName) => {
  const event = made.get(type)
  if (event === undefined) throw new Error(`there is no event ${type}`)
  return event
}

describe.each(eventTypeNames)('%s', (type) => {
  test('an event is found by its id and by the id of each object that it is about, in both orders', async () => {
    const { id, data } = madeOf(type)
    const objects = Object.entries(data).filter(([field]) => kindOf(field) !== undefined)
    expect(objects.length).toBeGreaterThan(0)
    for (const [field, object] of objects) {
      expect(searchedKinds).toContain(kindOf(field))
      for (const order of ['asc', 'desc'] as const) {
        expect(await search({ search: String(object), order }), field).toEqual([id])
      }
    }
    expect(await search({ search: id })).toEqual([id])
  })
})

test('with a type, a time or an event to go on after, only what fits both is found', async () => {
  const { id, data } = madeOf('contact.created')
  const subscriber = String(data.subscriberId)
  const created = JSON.parse(JSON.stringify((await world.events.get(world.db, live(world.account), id)) ?? {})).created
  for (const searched of [id, subscriber]) {
    expect(await search({ search: searched, type: 'contact.created' })).toEqual([id])
    expect(await search({ search: searched, type: 'contact.deleted' })).toEqual([])
    expect(await search({ search: searched, type: 'email.sent' })).toEqual([])
    expect(await search({ search: searched, since: created })).toEqual([id])
    expect(await search({ search: searched, until: created })).toEqual([])
    expect(await search({ search: searched, after: madeOf('subscriber.added').id })).toEqual([id])
    expect(await search({ search: searched, after: id })).toEqual([])
  }
})

test('a test key finds what both modes share, and nothing else of live mode', async () => {
  const scope = testing(world.account)
  const [shared, own] = [madeOf('domain.created'), madeOf('email.sent')]
  expect(await search({ search: String(shared.data.domainId) }, scope)).toEqual([shared.id])
  expect(await search({ search: shared.id }, scope)).toEqual([shared.id])
  expect(await search({ search: String(own.data.emailId) }, scope)).toEqual([])
  expect(await search({ search: own.id }, scope)).toEqual([])
})

test("a search finds nothing of another account's, no sample, and nothing for an id that no object has", async () => {
  const { id, data } = madeOf('email.sent')
  for (const searched of [id, String(data.emailId)]) {
    expect(await search({ search: searched }, live(world.stranger))).toEqual([])
  }
  const sample = newId('event', world.clock.now())
  await sql`
    INSERT INTO events (id, account_id, mode, type, body, sample, created_at)
    VALUES (${sample}, ${world.account}, 'live', 'email.sent', '{}', true, now())
  `.execute(world.db)
  expect(await search({ search: sample })).toEqual([])
  for (const kind of searchedKinds) expect(await search({ search: newId(kind, world.clock.now()) })).toEqual([])
})

test('a text that a client has chosen is not taken for the id of an object', async () => {
  const emailId = newId('email', world.clock.now())
  const data = { emailId: exampleId('email'), to: 'ada@example.com', subject: `"emailId":"${emailId}"` }
  await append({ type: 'email.sent', data: { ...data, sentAt: '2026-03-01T09:30:00.000Z' } })
  expect(await search({ search: emailId })).toEqual([])
})

test.each([
  '',
  'ada@example.com',
  'evt_',
  exampleId('event').slice(0, -1),
  `${exampleId('event')}x`,
  exampleId('webhook'),
])('a search is refused for what is no whole id of such an object: %j', (text) => {
  expect(contract.events.list.query.safeParse({ search: text }).success).toBe(false)
})
