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
  while ((await world.turn(take)) > 0);
  expect(await world.statuses()).toEqual({ queued: 600, waiting: 200 })
})

test('emails are made once there is room for a whole batch, or for all who are left', async () => {
  await start(await world.addAudience(450))
  const take = createEngine({ ...world.means, maxQueued: 300 })
  const turns = async () => {
    await world.time.advance(200)
    while ((await world.turn(take)) > 0);
    return world.statuses()
  }
  expect(await turns()).toEqual({ queued: 200, waiting: 250 })
  await world.handOver(99)
  expect(await turns()).toEqual({ handed_over: 99, queued: 101, waiting: 250 })
  await world.handOver(1)
  expect(await turns()).toEqual({ handed_over: 100, queued: 300, waiting: 50 })
  await world.handOver(49)
  expect(await turns()).toEqual({ handed_over: 149, queued: 251, waiting: 50 })
  await world.handOver(1)
  expect(await turns()).toEqual({ handed_over: 150, queued: 300 })
})

test('a campaign with nothing in the queue takes the room that another one leaves', async () => {
  await start(await world.addAudience(250))
  const take = createEngine({ ...world.means, maxQueued: 300 })
  while ((await world.turn(take)) > 0);
  await start(await world.addAudience(100))
  while ((await world.turn(take)) > 0);
  expect(await world.statuses()).toEqual({ queued: 300, waiting: 50 })
})

test('a turn that leaves no room for another batch is the last for a while', async () => {
  await start(await world.addAudience(500))
  const take = createEngine({ ...world.means, maxQueued: 399 })
  while ((await world.statuses()).queued === undefined) await world.turn(take)
  expect(await world.turn(take)).toBe(0)
  await world.time.advance(200)
  expect(await world.turn(take)).toBe(1)
})
