import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SegmentCondition } from '../../contract/segment-conditions.ts'
import { createContactMatching } from '../../server/audiences/matching-contacts.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { untilSessionsWait } from '../support/locks.ts'
import { patienceMs } from '../support/patience.ts'
import { live } from '../support/scope.ts'
import { createSegmentWorld, person, type SegmentWorld } from '../support/worlds/segments.ts'

let world: SegmentWorld
beforeAll(async () => {
  world = await createSegmentWorld()
})
afterAll(() => world.end())

const all: SegmentCondition = { type: 'field', field: 'email', operator: 'contains', value: '@' }

async function rowsOf(pages: AsyncGenerator<string>): Promise<string[]> {
  let text = ''
  for await (const page of pages) text += page
  return text.trimEnd().split('\r\n').slice(1)
}

test('an account looks for the people of its segments one request after the other, and another account need not wait for it', async () => {
  const { db, account, stranger, audiences } = world
  const limits = { lookMs: 2 * patienceMs, exactMs: 2 * patienceMs, patienceMs: 2 * patienceMs }
  const segments = world.segmentsWith(limits)
  const audienceId = await world.newAudience()
  await world.fill(audienceId, [person(), person()])
  const { id } = await segments.create(db, account, { audienceId, name: 'All', conditions: all })
  const { id: theirList } = await audiences.create(db, live(stranger), { name: 'Theirs' })
  const theirs = await segments.create(db, stranger, { audienceId: theirList, name: 'All', conditions: all })

  const { asked } = await inTransaction(db, async (trx) => {
    // Holds up what reads contacts.
    await sql`LOCK TABLE contacts IN ACCESS EXCLUSIVE MODE`.execute(trx)
    const ours = [
      segments.contacts(db, account, id, { limit: 10 }).then(({ data }) => data.length),
      segments.exportCsv(db, account, id).then(async (pages) => (await rowsOf(pages)).length),
      segments.preview(db, account, { audienceId, conditions: all }).then(({ contacts }) => contacts.length),
    ]
    await untilSessionsWait(db, 1, 'contacts')
    const asked = [...ours, segments.contacts(db, stranger, theirs.id, { limit: 10 }).then(({ data }) => data.length)]
    await untilSessionsWait(db, 2, 'contacts')
    const { rows } = await sql<{ count: number }>`
      SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND position('contacts' IN query) > 0
    `.execute(trx)
    expect(rows).toEqual([{ count: 2 }])
    return { asked }
  })
  expect(await Promise.all(asked)).toEqual([2, 2, 2, 0])
})

test('a page of matching contacts looks at fewer of them when that takes too long, and an export has all before one who takes too long', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  const ids = await world.fill(
    audienceId,
    Array.from({ length: 40 }, () => person()),
  )
  // One of them is as slow as the test likes.
  const slow = ids[10] ?? ''
  const condition = sql<boolean>`
    CASE WHEN c.subscriber_id = ${slow} THEN pg_advisory_xact_lock(7) IS NOT NULL ELSE true END`
  const match = { accountId: account, audienceId, condition }
  const matching = createContactMatching({ lookMs: 200 })
  const read: string[] = []
  await inTransaction(db, async (trx) => {
    await sql`SELECT pg_advisory_xact_lock(7)`.execute(trx)
    const page = await matching.list(db, { ...match, limit: 100 })
    // The newest of 40, and the eleventh is the slow one.
    expect(page.data.length).toBeLessThan(30)
    expect(page.data.map(({ subscriberId }) => subscriberId)).toEqual(ids.toReversed().slice(0, page.data.length))
    expect(page.nextCursor).not.toBeNull()
    const reading = async () => {
      for await (const piece of matching.exportCsv(db, { ...match, declared: [] })) read.push(piece)
    }
    await expect(reading()).rejects.toMatchObject({ code: 'unavailable' })
  })
  expect(read.join('').trimEnd().split('\r\n')).toHaveLength(1 + 10)
  const all = await rowsOf(createContactMatching().exportCsv(db, { ...match, declared: [] }))
  expect(all).toHaveLength(40)
  expect((await createContactMatching().list(db, { ...match, limit: 100 })).data).toHaveLength(40)
})
