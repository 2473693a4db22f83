import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { campaignLimits } from '../../contract/campaign-resource.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'
import { good } from '../support/worlds/emails.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

const people = 1_600

test(`an email that is sent singly is claimed apart from ${people} of a campaign that wait`, async () => {
  const id = await world.draft(await world.addAudience(people))
  await world.start(id)
  await world.run()
  expect(await world.statuses()).toEqual({ queued: people })
  // Some of the campaign are on their way already.
  const before = await world.queue.claim('fresh', 'bulk', 50)
  await world.time.advance(1_000)
  const single = await world.emails.send(world.db, world.live, good)
  const singles = await world.queue.claim('fresh', 'single', 10)
  expect(singles.map(({ emailId }) => emailId)).toEqual([single.id])
  expect(await world.queue.claim('fresh', 'bulk', people)).toHaveLength(people - before.length)
})

test('a test of a campaign is sent singly, before all of the campaign', async () => {
  const id = await world.draft(await world.addAudience(1))
  const tests = await world.campaigns.test(world.db, world.live, id, { to: ['ada@example.org', 'bob@example.org'] })
  const claimed = await world.queue.claim('fresh', 'single', 10)
  expect(claimed.map(({ emailId }) => emailId).toSorted()).toEqual(tests.toSorted())
})

test(`${campaignLimits.active} campaigns may be under way, and one more is refused until one ends`, async () => {
  const audience = await world.addAudience(1)
  const inAnHour = new Date(world.time.clock.now().getTime() + 3_600_000)
  const ids: string[] = []
  for (let n = 0; n < campaignLimits.active; n++) {
    const id = await world.draft(audience)
    await world.campaigns.send(world.db, world.live, id, inAnHour)
    ids.push(id)
  }
  const next = await world.draft(audience)
  await expect(world.start(next)).rejects.toMatchObject({ code: 'too_many_campaigns' })
  // Drafts do not count, and those of the other mode do: it is one account.
  await world.campaigns.cancel(world.db, world.live, ids[0] ?? '')
  await world.start(next)
  expect(await world.campaigns.get(world.db, world.live, next)).toMatchObject({ status: 'scheduled' })
})
