import { sql } from 'kysely'
import { afterAll, afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { createEngine } from '../../server/campaigns/engine.ts'
import { survivingFailures } from '../../server/campaigns/failed-turns.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

const logger = createLogger({ level: 'silent' })
let world: CampaignWorld
let audience: string
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  audience = await world.addAudience(0)
})
afterEach(() => world[Symbol.asyncDispose]())

const get = (id: string) => world.campaigns.get(world.db, world.live, id)

/** Starts a campaign to everybody, by a segment. */
async function start(): Promise<string> {
  const { id: segment } = await world.segments.create(world.db, world.account, {
    audienceId: audience,
    name: 'All',
    conditions: { type: 'field', field: 'email', operator: 'contains', value: '@' },
  })
  const id = await world.draft(audience, { segmentIds: [segment] })
  await world.start(id)
  return id
}

test('a turn that lists people who are slow to compare with segments ends soon, and the next one goes on behind it', async () => {
  await world.addPeople(audience, 300)
  const id = await start()
  // Each look at the clock is a third of a turn behind the one before.
  let now = performance.now()
  const slow = vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 333
    return now
  })
  onTestFinished(() => slow.mockRestore())
  await world.turn()
  const first = await get(id)
  expect(first.status).toBe('scheduled')
  expect(first.recipients).toBeGreaterThan(0)
  expect(first.recipients).toBeLessThan(150)
  slow.mockRestore()
  await world.run()
  expect(await get(id)).toMatchObject({ status: 'sending', recipients: 300 })
  expect(await world.statuses()).toEqual({ queued: 300 })
})

test('people who take too long to compare with segments hold up nobody else, and all are listed once it is possible', async () => {
  const { db } = world
  const people = await world.addPeople(audience, 40)
  const id = await start()
  // One of them is as slow as the test likes.
  await sql`
    CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$
  `.execute(db)
  await sql`
    CREATE TRIGGER waits BEFORE INSERT ON campaign_recipients FOR EACH ROW
    WHEN (NEW.subscriber_id = ${sql.lit(people[30] ?? '')}) EXECUTE FUNCTION wait_for_test()
  `.execute(db)
  const engine = createEngine({ ...world.means, comparingTimeoutMs: 200 })
  const take = survivingFailures(engine, { db, logger })
  await inTransaction(db, async (trx) => {
    await sql`SELECT pg_advisory_xact_lock(7)`.execute(trx)
    const reasons: unknown[] = []
    for (let turn = 0; turn < 4; turn++) {
      await world.turn(take)
      const { status, statusReason } = await get(id)
      expect(status).toBe('scheduled')
      reasons.push(statusReason)
      await world.time.advance(300_000)
    }
    expect(reasons).toContainEqual(expect.stringContaining('Its recipients could not be listed'))
  })
  await world.run()
  expect(await get(id)).toMatchObject({ status: 'sending', recipients: 40 })
  expect(await world.statuses()).toEqual({ queued: 40 })
})
