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

/** Lets so many seconds pass, in which everything leaves that is queued. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await world.turn()
    await world.handOver()
    await world.time.advance(1_000)
  }
}

const statusOf = async (id: string) => (await world.campaigns.get(world.db, world.live, id)).status

test('pausing and resuming while a batch is rendered loses nobody, also not the last who was handled', async () => {
  const id = await world.draft(await world.addAudience(3))
  await world.start(id)
  const people = await world.db.selectFrom('contacts').select('subscriber_id').orderBy('subscriber_id').execute()
  const second = people[1]?.subscriber_id ?? ''
  await world.turn()
  await world.turn(createEngine({ ...world.means, maxQueued: 2 }))
  expect(await world.statuses()).toEqual({ queued: 2, waiting: 1 })
  const interrupted = createEngine({
    ...world.means,
    renderer: {
      ...world.means.renderer,
      async render(content, people) {
        const rendered = await world.means.renderer.render(content, people)
        // The first has left, so that the second, the last who was handled, is the first to come back.
        const { db } = world
        const left = db.updateTable('email_recipients').set({ status: 'accepted' })
        await left.where('address', 'not like', `${second}%`).execute()
        await world.campaigns.pause(db, world.live, id)
        expect(await world.statuses()).toEqual({ handed_over: 1, waiting: 2 })
        await world.campaigns.resume(db, world.live, id)
        return rendered
      },
    },
  })
  await world.turn(interrupted)
  await pass(5)
  expect(await world.statuses()).toEqual({ handed_over: 3 })
  expect(await statusOf(id)).toBe('completed')
})
