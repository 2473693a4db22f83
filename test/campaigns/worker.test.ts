import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { claimCampaigns } from '../../server/campaigns/engine-queries.ts'
import { type CampaignWorker, campaignSilenceLimitMs, startCampaignWorker } from '../../server/campaigns/worker.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createRenderer, type Renderer } from '../../server/rendering/renderer.ts'
import { holdMonotonicClock } from '../support/clock.ts'
import { patienceMs } from '../support/patience.ts'
import { live, testing } from '../support/scope.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
let worker: CampaignWorker | undefined
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(async () => {
  await worker?.stop()
  await world[Symbol.asyncDispose]()
})

/** Starts a campaign of an account to one person. */
async function startOf(accountId: string): Promise<void> {
  const { db, audiences, contacts, campaigns } = world
  const scope = testing(accountId)
  const audience = await audiences.create(db, live(accountId), { name: 'News' })
  await contacts.add(db, scope, audience.id, { email: 'ada@example.org' })
  const { id } = await campaigns.create(db, scope, {
    name: 'News',
    audienceId: audience.id,
    from: 'a@example.com',
    subject: 'News',
    content: { text: 'News' },
  })
  await campaigns.send(db, scope, id, null)
}

test('a worker begins no turn while an email that is sent singly is under way', async () => {
  await startOf(world.account)
  const asked = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const bulkPause = {
    over() {
      asked.resolve()
      return over.promise
    },
    atOnce: (most: number) => most,
  }
  worker = startCampaignWorker({ ...world.means, bulkPause, logger: createLogger({ level: 'silent' }) })
  await asked.promise
  expect(await world.statuses()).toEqual({})
  over.resolve()
  await expect.poll(() => world.statuses(), { timeout: patienceMs }).toEqual({ handed_over: 1 })
})

test('a worker is silent while a turn stands still, not while one turn follows another', async () => {
  await startOf(world.account)
  await startOf(world.stranger)
  // Their recipients are listed.
  await world.turn()
  const clock = holdMonotonicClock()
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const goOn = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let turns = 0
  const gated: Renderer = {
    ...renderer,
    async renderFirst(content, people, limits) {
      const turn = turns++
      begun[turn]?.resolve()
      await goOn[turn]?.promise
      return renderer.renderFirst(content, people, limits)
    },
  }
  const started = startCampaignWorker({
    ...world.means,
    renderer: gated,
    logger: createLogger({ level: 'silent' }),
    intervalMs: 3_600_000,
  })
  worker = started
  await begun[0]?.promise
  clock.advance(campaignSilenceLimitMs)
  expect(started.idleMs()).toBe(campaignSilenceLimitMs)
  goOn[0]?.resolve()
  await begun[1]?.promise
  expect(started.idleMs()).toBe(0)
  clock.advance(1_000)
  expect(started.idleMs()).toBe(1_000)
  goOn[1]?.resolve()
})

/**
 * Starts campaigns of two accounts and a worker. Returns once its first rendering has begun, which ends when `goOn` is
 * called.
 */
async function startGated() {
  await startOf(world.account)
  await startOf(world.stranger)
  // Their recipients are listed.
  await world.turn()
  const begun = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const gated: Renderer = {
    ...renderer,
    async renderFirst(content, people, limits) {
      begun.resolve()
      await goOn.promise
      return renderer.renderFirst(content, people, limits)
    },
  }
  const logger = createLogger({ level: 'silent' })
  worker = startCampaignWorker({ ...world.means, renderer: gated, logger, intervalMs: 3_600_000 })
  await begun.promise
  return { worker, goOn: () => goOn.resolve() }
}

test('a worker that is stopped ends the turn under way, begins no other, and gives back what it has in hand', async () => {
  const { worker: started, goOn } = await startGated()
  const stopped = started.stop()
  goOn()
  await stopped

  expect(await world.statuses()).toEqual({ queued: 1, waiting: 1 })
  const due = await claimCampaigns(world.db, 10, 1_000)
  expect(due.map(({ queued_count: queued }) => queued).toSorted()).toEqual([0, 1])
})

test('a worker that is stopped gives up a turn that takes longer than it has, which is no failure and is made again', async () => {
  const { worker: started, goOn } = await startGated()
  await started.stop(0)

  expect(await world.statuses()).toEqual({ waiting: 2 })
  const due = await claimCampaigns(world.db, 10, 1_000)
  const untouched = { failed_turns: 0, status_reason: null, status: 'sending' }
  expect(due).toMatchObject([untouched, untouched])
  goOn()
})
