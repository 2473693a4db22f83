import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SegmentCondition } from '../../contract/segment-conditions.ts'
import { createContactMatching } from '../../server/audiences/matching-contacts.ts'
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

test('the people of a segment of a large audience are estimated from a sample', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  const many = 16_000
  const ids = await world.fillMany(audienceId, many)
  await sql`
    UPDATE subscribers SET properties = '{"plan": "pro"}' WHERE id >= ${ids[0]} AND id < ${ids[many / 4]}
  `.execute(db)
  const { id } = await world.segments.create(db, account, { audienceId, name: 'A quarter', conditions: ofPlan('pro') })
  const sample = 500
  const estimating = world.segmentsWith({ exactUpTo: many / 2, sample })
  const estimate = await estimating.count(db, account, id)
  expect(estimate.isEstimate).toBe(true)
  // Five standard deviations of the share, and of the size: an eighth of the people has an entry.
  const error = 5 * Math.hypot(many * Math.sqrt((0.25 * 0.75) / sample), 0.25 * Math.sqrt(many * 7))
  expect(Math.abs(estimate.count - many / 4)).toBeLessThan(error)
  expect(await estimating.count(db, account, id)).toEqual(estimate)
  // Up to the limit, a count is exact.
  expect(await world.segments.count(db, account, id)).toEqual({ count: many / 4, isEstimate: false })
  // Of an audience that is too large to be counted by its entries, the planner knows the size.
  await sql`ANALYZE contacts`.execute(db)
  const larger = await world.segmentsWith({ exactUpTo: 0, sample, scanned: 100 }).count(db, account, id)
  expect(Math.abs(larger.count - many / 4)).toBeLessThan(2 * error)
})

test('the people of a segment on the status alone are counted exactly in an audience of any size, by an index', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  await world.fillMany(audienceId, 5_000)
  const endingIn = async (status: string, ending: string) => {
    const changed = await sql`
      UPDATE contacts SET status = ${status} WHERE audience_id = ${audienceId} AND right(subscriber_id, 1) = ${ending}
    `.execute(db)
    return Number(changed.numAffectedRows)
  }
  const unsubscribed = await endingIn('unsubscribed', 'a')
  const pending = await endingIn('pending', 'b')
  const active: SegmentCondition = { type: 'field', field: 'status', operator: 'is', value: 'active' }
  const inName: SegmentCondition = { type: 'field', field: 'firstName', operator: 'exists', value: false }
  const both: SegmentCondition = { type: 'and', conditions: [active, inName] }
  const estimating = world.segmentsWith({ exactUpTo: 0, sample: 10 })
  const count = (conditions: SegmentCondition) => estimating.preview(db, account, { audienceId, conditions })
  expect(await count(active)).toMatchObject({ count: 5_000 - unsubscribed - pending, isEstimate: false })
  expect(await count({ ...active, value: 'unsubscribed' })).toMatchObject({ count: unsubscribed, isEstimate: false })
  expect(await count({ type: 'not', condition: { type: 'or', conditions: [active] } })).toMatchObject({
    count: unsubscribed + pending,
    isEstimate: false,
  })
  expect(await count(both)).toMatchObject({ isEstimate: true })
})

test('the people of a segment of a small audience are counted exactly, however long it takes', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  await world.fillMany(audienceId, 100)
  const hurried = world.segmentsWith({ exactMs: 1, longestMs: patienceMs })
  const conditions: SegmentCondition = { type: 'field', field: 'emailDomain', operator: 'is', value: 'example.com' }
  const { id } = await hurried.create(db, account, { audienceId, name: 'Small', conditions })
  const { counted } = await inTransaction(db, async (trx) => {
    // Holds up what reads subscribers, for longer than an exact count may take.
    await sql`LOCK TABLE subscribers IN ACCESS EXCLUSIVE MODE`.execute(trx)
    const counted = hurried.count(db, account, id)
    await untilSomebodyWaits(db, 'subscribers')
    await sql`SELECT pg_sleep(0.01)`.execute(trx)
    return { counted }
  })
  expect(await counted).toEqual({ count: 100, isEstimate: false })
})

test('a sample of an audience, its size and its inactive contacts are found by indexes of their own', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  await world.fillMany(audienceId, 2_000)
  await sql`VACUUM (ANALYZE) contacts`.execute(db)
  const plans: string[] = []
  const explained = db.withPlugin({
    transformQuery: ({ node }) =>
      node.kind === 'RawNode'
        ? { ...node, sqlFragments: [`EXPLAIN ${node.sqlFragments[0]}`, ...node.sqlFragments.slice(1)] }
        : node,
    async transformResult({ result }) {
      plans.push(...result.rows.map((row) => String(row['QUERY PLAN'])))
      return { ...result, rows: [] }
    },
  })
  const { count } = createContactMatching({ exactUpTo: -1 })
  const audience = { accountId: account, audienceId }
  await count(explained, {
    ...audience,
    condition: sql`s.first_name IS NULL AND c.status = 'active'`,
    isOfStatusAlone: false,
  })
  // The size of the audience, and the sample.
  expect(plans.filter((line) => line.includes('contacts_sample '))).toHaveLength(2)
  await count(explained, { ...audience, condition: sql`c.status = 'active'`, isOfStatusAlone: true })
  expect(plans.join('\n')).toContain('contacts_not_active ')
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

test('an estimate looks at fewer people when they take too long', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  await world.fillMany(audienceId, 800)
  const { count } = createContactMatching({ exactUpTo: -1, lookMs: 200, sample: 1_000 })
  // The sample has about 100 people. The first 50 of them are quick, and the others wait.
  const { rows } = await sql<{ id: string }>`
    SELECT subscriber_id AS id FROM contacts WHERE audience_id = ${audienceId} AND right(subscriber_id, 1) < '4'
    ORDER BY reverse(subscriber_id) LIMIT 50
  `.execute(db)
  const quick = rows.map(({ id }) => id)
  const condition = sql<boolean>`
    CASE WHEN c.subscriber_id = ANY(${quick}::text[]) THEN true ELSE pg_advisory_xact_lock(9) IS NULL END`
  const counted = await inTransaction(db, async (trx) => {
    await sql`SELECT pg_advisory_xact_lock(9)`.execute(trx)
    return count(db, { accountId: account, audienceId, condition, isOfStatusAlone: false })
  })
  // All whom it looked at in the end match.
  expect(counted.isEstimate).toBe(true)
  expect(counted.count).toBeGreaterThan(400)
  const alone = await count(db, { accountId: account, audienceId, condition, isOfStatusAlone: false })
  expect(alone.count).toBeLessThan(counted.count)
})

test('the people of a segment are counted one count after the other, for at most so long', async () => {
  const { db, account } = world
  const audienceId = await world.newAudience()
  await world.fill(audienceId, [person({ properties: { plan: 'pro' } })])
  const limited = world.segmentsWith({ patienceMs: 20, exactMs: patienceMs, longestMs: patienceMs })
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
