import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { createContactService } from '../../server/audiences/contact-service.ts'
import { createEngine } from '../../server/campaigns/engine.ts'
import type { Clock } from '../../server/lib/clock.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

const get = (id: string) => world.campaigns.get(world.db, world.live, id)

test('whoever was added before a campaign was sent gets it, whatever the clocks of the processes are', async () => {
  const { db, live, outbox, confirmations } = world
  const audience = await world.addAudience(0)
  const id = await world.draft(audience)
  const clockOff = (ms: number): Clock => ({ now: () => new Date(world.time.clock.now().getTime() + ms) })
  const ahead = createContactService({ clock: clockOff(2_000), outbox, confirmations })
  await ahead.add(db, live, audience, { email: 'ada@example.org' })
  await ahead.addBatch(db, live, audience, { contacts: [{ email: 'bob@example.org' }] })
  await world.start(id)
  const behind = createEngine({ ...world.means, clock: clockOff(-2_000) })
  await world.turn(behind)
  expect(await get(id)).toMatchObject({ status: 'sending', recipients: 2 })
})

test('whoever joins between two steps of listing is not listed', async () => {
  const audience = await world.addAudience(3)
  const id = await world.draft(audience)
  await world.start(id)
  const take = createEngine({ ...world.means, bulkPause: { over: () => Promise.resolve(), atOnce: () => 2 } })
  await world.turn(take)
  expect(await get(id)).toMatchObject({ status: 'scheduled', recipients: 2 })
  await world.time.advance(1)
  await world.addPeople(audience, 3)
  while ((await get(id)).status === 'scheduled') await world.turn(take)
  expect(await get(id)).toMatchObject({ status: 'sending', recipients: 3 })
})
