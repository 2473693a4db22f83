import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { patienceMs } from '../support/patience.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createSegmentWorld, ofPlan, person, type SegmentWorld } from '../support/worlds/segments.ts'

let world: SegmentWorld

beforeAll(async () => {
  world = await createSegmentWorld()
})
afterAll(() => world.end())

test('the people of a segment are estimated from a sample where an exact count takes too long', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  await world.fillMany(audienceId, 4_000)
  await sql`
      UPDATE subscribers SET properties = '{"plan": "pro"}'
      WHERE id IN (SELECT subscriber_id FROM contacts WHERE audience_id = ${audienceId} ORDER BY subscriber_id LIMIT 1000)
    `.execute(db)
  const { id } = await world.segments.create(db, account, { audienceId, name: 'A quarter', conditions: ofPlan('pro') })
  const estimating = world.segmentsWith({ exactMs: 0, sample: 1_000 })
  const estimate = await estimating.count(db, account, id)
  expect(estimate.isEstimate).toBe(true)
  // Five standard deviations.
  expect(Math.abs(estimate.count - 1_000)).toBeLessThan(5 * 4_000 * Math.sqrt((0.25 * 0.75) / 1_000))
  expect(estimate.count).not.toBe(1_000)
  expect(await estimating.count(db, account, id)).toEqual(estimate)
  // A sample of all is exact.
  const all = world.segmentsWith({ exactMs: 0, sample: 10_000 })
  expect(await all.count(db, account, id)).toEqual({ count: 1_000, isEstimate: true })
  // Of an audience that is too large to be read as a whole, the planner knows the size.
  await sql`ANALYZE contacts`.execute(db)
  const large = world.segmentsWith({ exactMs: 0, sample: 10_000, scanned: 2_000 })
  const { count } = await large.count(db, account, id)
  // All of the first 1,000 of 2,000 that were looked at match.
  expect(count).toBeGreaterThan(1_500)
  expect(count).toBeLessThan(2_500)
})

test('the people of a segment are estimated when the time limit ends an exact count, which leaves the connection as it was', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  await world.fillMany(audienceId, 20_000)
  // A millisecond is not enough to look at 20,000 people.
  const hurried = world.segmentsWith({ exactMs: 1 })
  const preview = await hurried.preview(db, account, { audienceId, conditions: ofPlan('pro') })
  expect(preview).toMatchObject({ count: 0, isEstimate: true })
  const { rows } = await sql<{ limit: string }>`SELECT current_setting('statement_timeout') AS limit`.execute(db)
  expect(rows).toEqual([{ limit: '0' }])
})

test('the people of a segment are counted one count after the other, for at most so long', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  await world.fill(audienceId, [person({ properties: { plan: 'pro' } })])
  const limited = world.segmentsWith({ patienceMs: 20, exactMs: patienceMs })
  const { id } = await limited.create(db, account, { audienceId, name: 'Held', conditions: ofPlan('pro') })
  const { first } = await inTransaction(db, async (trx) => {
    // Holds up what reads contacts.
    await sql`LOCK TABLE contacts IN ACCESS EXCLUSIVE MODE`.execute(trx)
    const first = limited.count(db, account, id)
    await untilSomebodyWaits(db, 'contacts')
    expect(await refusal(limited.count(db, account, id))).toBe('unavailable')
    return { first }
  })
  expect(await first).toMatchObject({ count: 1 })
  expect(await limited.count(db, account, id)).toMatchObject({ count: 1 })
})
