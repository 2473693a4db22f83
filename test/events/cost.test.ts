import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EventTypeName } from '../../contract/event-types.ts'
import type { EventListQuery } from '../../contract/events.ts'
import type { Mode } from '../../contract/mode.ts'
import type { Db } from '../../server/database/connection.ts'
import { createEventService } from '../../server/events/service.ts'
import { firstIdAt, newId } from '../../server/shared/ids.ts'
import { lastPositionOf, nextEvents } from '../../server/webhook-delivery/recovery/recoverable.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { plannerStates, rowsRead } from '../support/rows-read.ts'

/*
 * The number of rows that a poll reads is bounded by the number of events it shows, however many events its key or its
 * filter leaves out, and whatever the planner statistics of the tables are.
 */

const others = 20_000
const limit = 50
/** Rows: for each of some kinds of events an entry for each event shown and one more, and the events. */
const bound = 20 * limit

const events = createEventService()
let database: TestDatabase
let db: Db
const account = newId('account', new Date())
const scopeOf = (mode: Mode) => ({ accountId: account, mode })

/** Events that have left the outbox. Returns their ids. */
async function add(count: number, mode: Mode, type: EventTypeName, accountId = account): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('event', new Date()))
  await sql`
    WITH event AS (
      INSERT INTO events (id, account_id, mode, type, body, created_at)
      SELECT id, ${accountId}, ${mode}, ${type}, format('{"id":"%s"}', id), now() FROM unnest(${ids}::text[]) id
      RETURNING id, account_id, mode, type
    )
    INSERT INTO outbox (event_id, account_id, mode, type) SELECT id, account_id, mode, type FROM event
  `.execute(db)
  await sql`DELETE FROM outbox WHERE event_id = ANY(${ids}::text[])`.execute(db)
  return ids
}

/** An identifier that is made so many milliseconds from now. */
const idAt = (kind: 'email' | 'audience', inMs: number) => firstIdAt(kind, new Date(Date.now() + inMs))

let early: string[]
let late: string[]

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  for (const table of ['events', 'event_positions', 'outbox_rows']) {
    await sql`ALTER TABLE ${sql.table(table)} SET (autovacuum_enabled = off)`.execute(db)
  }
  early = await add(2, 'test', 'email.sent')
  await add(others, 'live', 'email.sent')
  late = await add(1, 'test', 'email.opened')
  await add(others, 'live', 'email.delivered', newId('account', new Date()))
})
afterAll(() => database.drop())

describe.each(plannerStates('^(events|event_positions|outbox)'))('where PostgreSQL %s', (_, statement) => {
  beforeAll(async () => {
    await sql.raw(statement).execute(db)
  })

  test.each<[string, Mode, () => Partial<EventListQuery>, () => string[]]>([
    ['of a key that sees few, oldest first', 'test', () => ({ order: 'asc' }), () => [...early, ...late]],
    ['of a key that sees few, newest first', 'test', () => ({}), () => [...late, ...early.toReversed()]],
    ['after an event', 'test', () => ({ after: early[0] }), () => [early[1] ?? '', ...late]],
    ['with nothing new', 'test', () => ({ after: late[0] }), () => []],
    ['of a rare type', 'test', () => ({ order: 'asc', type: 'email.opened' }), () => late],
    ['of a type that never comes', 'live', () => ({ order: 'asc', type: 'email.bounced' }), () => []],
    ['of a shared type that never comes', 'live', () => ({ type: 'contact.created' }), () => []],
    ['newest first, of before all', 'live', () => ({ until: '2020-01-01T00:00:00Z' }), () => []],
    ['for one event', 'test', () => ({ search: early[1] }), () => [early[1] ?? '']],
    ['for an event of others', 'test', () => ({ search: newId('event', new Date()) }), () => []],
    ['about an email made after all others', 'live', () => ({ search: idAt('email', 300_000) }), () => []],
    ['about an audience, for which no type is there', 'live', () => ({ search: idAt('audience', -300_000) }), () => []],
  ])('a poll %s reads few rows', async (_, mode, query, expected) => {
    let shown: string[] = []
    const read = await rowsRead(db, async (handle) => {
      const page = await events.list(handle, scopeOf(mode), { limit, ...query() } as EventListQuery)
      shown = page.data.map(({ id }) => String(id))
    })
    expect(shown).toEqual(expected())
    expect(read).toBeLessThan(bound)
  })

  test.each<[string, () => Partial<EventListQuery>]>([
    ['a span of time', () => ({ until: '2020-01-01T00:00:00Z' })],
    ['what came since an email was made', () => ({ search: idAt('email', -300_000) })],
  ])('%s is looked through in parts, and found whole', async (_, rangeOf) => {
    const query = { limit: 100, order: 'asc', ...rangeOf() } as const
    let cursor: string | undefined
    let pages = 0
    do {
      const read = await rowsRead(db, async (handle) => {
        const page = await events.list(handle, scopeOf('live'), { ...query, cursor })
        expect(page.data).toEqual([])
        cursor = page.nextCursor ?? undefined
      })
      // Its position, that there is an event, and the event.
      expect(read).toBeLessThan(4 * 5_000)
      pages += 1
    } while (cursor !== undefined)
    expect(pages).toBe(1 + others / 5_000)
  })

  test('a recovery reads no more than its page', async () => {
    const lastPosition = await lastPositionOf(db, account)
    const span = { accountId: account, since: new Date(0), until: null, types: null, lastPosition }
    const read = await rowsRead(db, async (handle) => {
      expect((await nextEvents(handle, span, { position: 0, id: '' })).events).toHaveLength(1_000)
    })
    expect(read).toBeLessThan(4_000)
  })
})

test('a page of a span that is not full goes on where it looked to, both ways', async () => {
  const accountId = newId('account', new Date())
  const [first = ''] = await add(1, 'live', 'email.sent', accountId)
  await add(12_000, 'live', 'email.sent', accountId)
  const [last = ''] = await add(1, 'live', 'email.sent', accountId)
  await sql`UPDATE events SET created_at = '2021-01-01' WHERE id = ANY(${[first, last]}::text[])`.execute(db)
  for (const order of ['asc', 'desc'] as const) {
    const seen: string[] = []
    let cursor: string | undefined
    let pages = 0
    do {
      const page = await events.list(
        db,
        { accountId, mode: 'live' },
        { limit: 10, order, until: '2022-01-01T00:00:00Z', after: undefined, cursor },
      )
      seen.push(...page.data.map(({ id }) => String(id)))
      cursor = page.nextCursor ?? undefined
      pages += 1
    } while (cursor !== undefined)
    // Newest first, what is younger by more than an hour is not looked at.
    expect([seen, pages]).toEqual(order === 'asc' ? [[first, last], 3] : [[], 1])
  }
})
