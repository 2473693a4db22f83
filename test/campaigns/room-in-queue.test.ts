import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { createEngine } from '../../server/campaigns/engine.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

const start = async (audienceId: string) => world.start(await world.draft(audienceId))

test('only so many emails of an account wait in the queue, however many campaigns it has', async () => {
  const audience = await world.addAudience(400)
  await start(audience)
  await start(audience)
  const take = createEngine({ ...world.means, maxQueued: 600 })
  for (let round = 0; round < 3; round++) {
    await world.time.advance(200)
    while ((await world.turn(take)) > 0);
  }
  expect(await world.statuses()).toEqual({ queued: 556, waiting: 244 })
})

test('emails are made once there is room for an eighth of what is queued, or for all who are left', async () => {
  await start(await world.addAudience(307))
  const take = createEngine({ ...world.means, maxQueued: 300 })
  const turns = async () => {
    await world.time.advance(200)
    while ((await world.turn(take)) > 0);
    return world.statuses()
  }
  expect(await turns()).toEqual({ queued: 200, waiting: 107 })
  expect(await turns()).toEqual({ queued: 267, waiting: 40 })
  await world.handOver(29)
  expect(await turns()).toEqual({ handed_over: 29, queued: 238, waiting: 40 })
  await world.handOver(1)
  expect(await turns()).toEqual({ handed_over: 30, queued: 267, waiting: 10 })
  await world.handOver(9)
  expect(await turns()).toEqual({ handed_over: 39, queued: 258, waiting: 10 })
  await world.handOver(1)
  expect(await turns()).toEqual({ handed_over: 40, queued: 267 })
})

test('a campaign with nothing in the queue takes the room that another one leaves', async () => {
  await start(await world.addAudience(250))
  const take = createEngine({ ...world.means, maxQueued: 300 })
  while ((await world.turn(take)) > 0);
  await start(await world.addAudience(100))
  while ((await world.turn(take)) > 0);
  expect(await world.statuses()).toEqual({ queued: 289, waiting: 61 })
})

test('a turn that leaves no room for another batch is the last for a while', async () => {
  await start(await world.addAudience(500))
  const take = createEngine({ ...world.means, maxQueued: 399 })
  while ((await world.statuses()).queued === undefined) await world.turn(take)
  expect(await world.turn(take)).toBe(0)
  await world.time.advance(200)
  expect(await world.turn(take)).toBe(1)
})

test.each([
  ['a throttle', { throttle: 360_000 }],
  ['large content', { content: { text: 'x'.repeat(120_000) } }],
])(
  'a campaign of which one email hangs goes on beside one with %s, which takes each place as it comes',
  async (_, fields) => {
    const plain = await world.draft(await world.addAudience(600))
    await world.start(plain)
    const take = createEngine({ ...world.means, maxQueued: 300 })
    while ((await world.turn(take)) > 0);
    const [hanging] = await world.db.selectFrom('email_recipients').select('email_id').limit(1).execute()
    await world.start(await world.draft(await world.addAudience(900), fields))
    for (let round = 0; round < 14; round++) {
      await world.time.advance(500)
      await world.db
        .updateTable('email_recipients')
        .set({ status: 'sending' })
        .where('email_id', '=', hanging?.email_id ?? '')
        .execute()
      await world.handOver(50)
      while ((await world.turn(take)) > 0);
    }
    expect(await waitingOf(plain)).toBeLessThan(250)
  },
)

test('a campaign with large content takes room that one with small content leaves', async () => {
  await start(await world.addAudience(2_000))
  // 516 emails of 520 kB are 256 MiB.
  const take = createEngine({ ...world.means, maxQueued: 900 })
  while ((await world.turn(take)) > 0);
  const large = await world.draft(await world.addAudience(5), { content: { text: 'x'.repeat(520_000) } })
  await world.start(large)
  for (let round = 0; round < 2; round++) {
    await world.time.advance(200)
    while ((await world.turn(take)) > 0);
    await world.handOver(100)
  }
  await world.time.advance(200)
  while ((await world.turn(take)) > 0);
  expect(await waitingOf(large)).toBe(0)
})

async function waitingOf(campaignId: string): Promise<number> {
  const rows = await world.db
    .selectFrom('campaign_recipients')
    .select('status')
    .where('campaign_id', '=', campaignId)
    .where('status', '=', 'waiting')
    .execute()
  return rows.length
}
