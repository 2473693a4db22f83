import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

/** A kilobyte that makes messages of half a million characters. */
const content = { text: `{% for i in (1..500) %}${'x'.repeat(1_000)}{% endfor %}` }

test('small content that makes large messages takes more turns, and loses nobody', async () => {
  const id = await world.draft(await world.addAudience(20), { content })
  await world.start(id)
  await world.turn()
  await world.turn()
  expect(await world.statuses()).toEqual({ queued: 17, waiting: 3 })
  await world.turn()
  expect(await world.statuses()).toEqual({ queued: 20 })
})

test('variants that make large messages lose nobody, and write to nobody twice', async () => {
  const variants = [{ name: 'Large' }, { name: 'Small', content: { text: 'Spring is here.' } }]
  const abTest = { winnerBy: 'manual' as const, share: 100, variants }
  const id = await world.draft(await world.addAudience(60), { content, abTest })
  await world.start(id)
  await world.run()
  expect(await world.statuses()).toEqual({ queued: 60 })
  expect(new Set(await world.written()).size).toBe(60)
})
