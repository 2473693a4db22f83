import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createEngine } from '../../server/campaigns/engine.ts'
import { claimCampaigns } from '../../server/campaigns/engine-queries.ts'
import { windowAt } from '../../server/campaigns/send-window.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { markSending, revertSending } from '../../server/email-delivery/sending-queries.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

const hourMs = 3_600_000
const sendWindow = { from: '09:00', to: '18:00', timezone: 'Europe/Berlin' }
const shown = {
  ...sendWindow,
  days: ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const,
}

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
  // A Saturday, an hour before the window closes. On Sunday clocks go forward.
  await world.time.set(new Date('2026-03-28T16:00:00.000Z'))
})
afterEach(() => world[Symbol.asyncDispose]())

const opens = '2026-03-29T07:00:00.000Z'
const get = (id: string) => world.campaigns.get(world.db, world.live, id)

async function start(people: number, fields = {}): Promise<string> {
  const id = await world.draft(await world.addAudience(people), { sendWindow, ...fields })
  await world.start(id)
  return id
}

describe('outside of its window', () => {
  test('a campaign takes back what is queued, says until when it rests, and wakes then', async () => {
    const id = await start(5)
    await world.run()
    expect(await world.statuses()).toEqual({ queued: 5 })
    await world.time.set(new Date('2026-03-28T16:59:59.999Z'))
    await world.run()
    expect(await world.statuses()).toEqual({ queued: 5 })
    // It looks at queued emails every 200 ms.
    await world.time.set(new Date('2026-03-28T17:00:00.199Z'))
    await world.run()
    expect(await world.statuses()).toEqual({ waiting: 5 })
    expect(await world.due()).toEqual([])
    const waitingFor = { reason: 'send_window', until: opens }
    expect(await get(id)).toMatchObject({ status: 'sending', sendWindow: shown, waitingFor })
    await world.time.set(new Date(Date.parse(opens) - 1))
    expect(await world.turn()).toBe(0)
    await world.time.set(new Date(opens))
    await world.run()
    expect(await world.statuses()).toEqual({ queued: 5 })
    expect(await get(id)).toMatchObject({ status: 'sending', waitingFor: null })
    await world.handOver()
    await world.time.advance(1_000)
    await world.run()
    expect(await get(id)).toMatchObject({ status: 'completed' })
    expect(await world.written()).toHaveLength(5)
  })

  test('what is in a conversation is left alone, counted, and ends the campaign if it was the last', async () => {
    const id = await start(1)
    await world.run()
    await world.db.updateTable('emails').set({ status: 'sending' }).execute()
    await world.db.updateTable('email_recipients').set({ status: 'sending', attempt_count: 1 }).execute()
    await world.time.set(new Date('2026-03-28T17:00:00.000Z'))
    await world.run()
    expect(await world.statuses()).toEqual({ queued: 1 })
    await world.db.updateTable('email_recipients').set({ status: 'accepted' }).execute()
    await world.time.advance(2_000)
    await world.run()
    expect(await get(id)).toMatchObject({ status: 'completed', waitingFor: null })
  })

  test('an email that is given back waits for its first attempt, and is tried again at any hour', async () => {
    await start(1)
    await world.run()
    const { id: emailId } = await world.db.selectFrom('emails').select('id').executeTakeFirstOrThrow()
    const place = { emailId, position: 0 }
    const at = world.time.clock.now()
    await inTransaction(world.db, (trx) => markSending(trx, { begun: [place], resent: [], at }))
    await world.time.set(new Date('2026-03-28T17:00:00.000Z'))
    await world.run()
    expect(await world.planned()).toMatchObject({ isHeld: false, conversations: [{ recipients: [{ attempts: 1 }] }] })
    await inTransaction(world.db, (trx) => revertSending(trx, [{ ...place, attempt: 1 }]))
    expect(await world.planned()).toMatchObject({ isHeld: true, conversations: [] })
    await world.told('deferred')
    await world.time.advance(hourMs)
    expect(await world.planned()).toMatchObject({ isHeld: false, conversations: [{ recipients: [{ attempts: 1 }] }] })
  })

  test('a campaign that is sent is listed and rests; pausing, resuming and canceling work at once', async () => {
    await world.time.set(new Date('2026-03-28T20:00:00.000Z'))
    const id = await start(2)
    await world.run()
    expect(await get(id)).toMatchObject({ status: 'sending', recipients: 2, waitingFor: { until: opens } })
    await world.campaigns.pause(world.db, world.live, id)
    expect(await get(id)).toMatchObject({ status: 'paused', waitingFor: null })
    await world.time.set(new Date(opens))
    expect(await world.turn()).toBe(0)
    await world.time.set(new Date('2026-03-29T20:00:00.000Z'))
    await world.campaigns.resume(world.db, world.live, id)
    await world.run()
    expect(await get(id)).toMatchObject({ waitingFor: { until: '2026-03-30T07:00:00.000Z' } })
    expect(await world.written()).toEqual([])
    await world.campaigns.cancel(world.db, world.live, id)
    expect(await get(id)).toMatchObject({ status: 'canceled', waitingFor: null })
    expect(await world.turn()).toBe(0)
  })

  test('a batch that was rendered before the window closed is not written', async () => {
    await start(2)
    await world.turn()
    const slow = createEngine({
      ...world.means,
      renderer: {
        ...world.means.renderer,
        async renderFirst(content, people, limits) {
          await world.time.set(new Date('2026-03-28T17:00:00.000Z'))
          return world.means.renderer.renderFirst(content, people, limits)
        },
      },
    })
    await world.turn(slow)
    expect(await world.statuses()).toEqual({ waiting: 2 })
    expect(await world.written()).toEqual([])
  })
})

test('a window and a throttle hold together over two workers, across a change of clocks', async () => {
  const id = await start(170, { throttle: 60 })
  const workers = [createEngine(world.means), createEngine(world.means)]
  const madeAt: number[] = []
  while ((await get(id)).endedAt === null) {
    const claimed = await claimCampaigns(world.db, 10, 1_000)
    await Promise.all(claimed.flatMap((campaign) => workers.map((take) => take(campaign))))
    const handed = await world.handOver()
    const now = world.time.clock.now().getTime()
    for (let n = 0; n < handed; n++) madeAt.push(now)
    const until = (await get(id)).waitingFor?.until ?? null
    if (until === null) await world.time.advance(60_000)
    else await world.time.set(new Date(until))
  }
  expect(madeAt).toHaveLength(170)
  expect(await world.written()).toHaveLength(170)
  for (const at of madeAt) {
    expect(windowAt({ ...sendWindow, days: [...shown.days] }, at).isOpen).toBe(true)
    expect(madeAt.filter((other) => other >= at && other < at + hourMs).length).toBeLessThanOrEqual(60)
  }
  // It wakes when the window opens, not later.
  expect(madeAt.find((at) => at > Date.parse('2026-03-28T17:00:00.000Z'))).toBe(Date.parse(opens))
})

describe('a window', () => {
  test('a window is changed and taken away, stays in a copy, and has the days that are written', async () => {
    const { db, live, campaigns } = world
    const id = await world.draft(await world.addAudience(0), {
      sendWindow: { ...sendWindow, days: ['sunday', 'monday'] },
    })
    expect((await get(id)).sendWindow).toEqual({ ...sendWindow, days: ['monday', 'sunday'] })
    expect((await campaigns.update(db, live, id, { name: 'Other' })).sendWindow?.days).toEqual(['monday', 'sunday'])
    expect((await campaigns.update(db, live, id, { sendWindow })).sendWindow).toEqual(shown)
    expect((await campaigns.duplicate(db, live, id)).sendWindow).toEqual(shown)
    expect((await campaigns.update(db, live, id, { sendWindow: null })).sendWindow).toBeNull()
  })

  test.each([
    ['that is empty', { to: '09:00' }, 'body.sendWindow.to'],
    ['in an unknown zone', { timezone: 'Mars/Base' }, 'body.sendWindow.timezone'],
  ])('%s is refused', async (_, change, path) => {
    const written = world.draft(await world.addAudience(0), { sendWindow: { ...sendWindow, ...change } })
    await expect(written).rejects.toMatchObject({ code: 'rule_violation', details: [{ path }] })
  })
})
