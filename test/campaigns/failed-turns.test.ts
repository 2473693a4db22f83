import { sql } from 'kysely'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { createEngine } from '../../server/campaigns/engine.ts'
import { survivingFailures } from '../../server/campaigns/failed-turns.ts'
import { startCampaignWorker } from '../../server/campaigns/worker.ts'
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
  audience = await world.addAudience(3)
})
afterEach(() => world[Symbol.asyncDispose]())

const get = (id: string) => world.campaigns.get(world.db, world.live, id)

async function start(fields = {}): Promise<string> {
  const id = await world.draft(audience, fields)
  await world.start(id)
  return id
}

/** Has PostgreSQL refuse what a campaign writes of its recipients, until the returned function is called. */
async function breakRecipients(id: string, operation: 'INSERT' | 'UPDATE'): Promise<() => Promise<unknown>> {
  await sql`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a secret cause'; END $$
  `.execute(world.db)
  await sql`
    CREATE TRIGGER refuses BEFORE ${sql.raw(operation)} ON campaign_recipients FOR EACH ROW
    WHEN (NEW.campaign_id = ${sql.lit(id)}) EXECUTE FUNCTION refuse()
  `.execute(world.db)
  return () => sql`DROP TRIGGER refuses ON campaign_recipients`.execute(world.db)
}

/** Gives turns as a worker does, for so long. */
async function runFor(seconds: number): Promise<void> {
  const take = survivingFailures(createEngine(world.means), { db: world.db, logger })
  for (let second = 0; second < seconds; second++) {
    while ((await world.turn(take)) > 0);
    await world.handOver()
    await world.time.advance(1_000)
  }
}

test('a campaign whose turns fail while its recipients are listed says so, holds up no other, and goes on when the cause is gone', async () => {
  const broken = await start()
  const repair = await breakRecipients(broken, 'INSERT')
  const other = await start()
  await runFor(10)
  expect(await get(other)).toMatchObject({ status: 'completed', statusReason: null })
  const { status, statusReason } = await get(broken)
  expect(status).toBe('scheduled')
  // At once, and after 2, and 4 more seconds.
  expect(statusReason).toMatch(/^Its recipients could not be listed.*tried again by itself\. Failed so far: 3\.$/)
  expect(statusReason).not.toContain('secret')
  await repair()
  await runFor(12)
  expect(await get(broken)).toMatchObject({ status: 'completed', statusReason: null, recipients: 3 })
  expect(await world.events()).toHaveLength(4)
})

test('a campaign whose turns fail while it is sending says so, and loses nobody', async () => {
  const id = await start()
  await world.turn()
  const repair = await breakRecipients(id, 'UPDATE')
  await runFor(3)
  expect(await get(id)).toMatchObject({
    status: 'sending',
    statusReason: expect.stringMatching(/^Its next messages could not be made.*Failed so far: 2\.$/),
  })
  await repair()
  await runFor(8)
  expect(await get(id)).toMatchObject({ status: 'completed', statusReason: null })
  expect(await world.written()).toHaveLength(3)
})

test('a campaign whose turns fail is tried every five minutes at last, and can be canceled all the time', async () => {
  const id = await start()
  await breakRecipients(id, 'INSERT')
  await world.db.updateTable('campaigns').set({ failed_turns: 1_000_000 }).execute()
  await runFor(1)
  const { due_at: dueAt } = await world.db.selectFrom('campaigns').select('due_at').executeTakeFirstOrThrow()
  expect(dueAt?.getTime()).toBe(world.time.clock.now().getTime() + 299_000)
  await world.campaigns.cancel(world.db, world.live, id)
  expect(await get(id)).toMatchObject({ status: 'canceled', statusReason: null })
  expect(await world.turn()).toBe(0)
})

test('a campaign whose turns fail and that may not start late is canceled with that reason', async () => {
  const id = await start({ lateStart: 'skip' })
  const repair = await breakRecipients(id, 'INSERT')
  await runFor(1)
  await repair()
  await world.time.advance(11 * 60_000)
  await runFor(1)
  expect(await get(id)).toMatchObject({
    status: 'canceled',
    statusReason: expect.stringContaining('its recipients could not be listed: "lateStart" is "skip"'),
  })
})

test('a campaign whose turns fail is seen so by a worker', async () => {
  const id = await start()
  await breakRecipients(id, 'INSERT')
  const worker = startCampaignWorker({ ...world.means, logger, intervalMs: 3_600_000 })
  await expect.poll(async () => (await get(id)).statusReason).toMatch(/^Its recipients could not be listed/)
  await worker.stop()
})
