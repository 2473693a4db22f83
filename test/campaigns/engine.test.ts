import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createEngine } from '../../server/campaigns/engine.ts'
import { claimCampaigns } from '../../server/campaigns/engine-queries.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

/** Lets all time pass that a campaign waits for its emails to leave. */
async function finish(): Promise<void> {
  for (;;) {
    await world.run()
    const handed = await world.handOver()
    await world.time.advance(1_000)
    if ((await world.turn()) === 0 && handed === 0) return
  }
}

const start = async (audienceId: string, fields = {}) => {
  const id = await world.draft(audienceId, fields)
  await world.start(id)
  return id
}
const statusOf = async (id: string) => (await world.campaigns.get(world.db, world.live, id)).status

describe('from start to completion', () => {
  test('each person gets one email, and both events are there once', async () => {
    const audience = await world.addAudience(450)
    const id = await start(audience)
    await finish()
    expect(await world.campaigns.get(world.db, world.live, id)).toMatchObject({ status: 'completed', recipients: 450 })
    const written = await world.written()
    expect(written).toHaveLength(450)
    expect(new Set(written).size).toBe(450)
    expect(await world.events()).toEqual([
      { type: 'campaign.sent', recipients: { total: 450 } },
      { type: 'campaign.completed', recipients: { total: 450, sent: 450, failed: 0, deferred: 0, skipped: 0 } },
    ])
    expect(await world.campaigns.statistics(world.db, world.live, id)).toMatchObject({
      recipients: 450,
      waiting: 0,
      queued: 0,
      handedOver: 450,
      failed: 0,
      canceled: 0,
      emails: { sent: 450, delivered: 450 },
    })
  })

  test('an audience without people is completed, with both events', async () => {
    const id = await start(await world.addAudience(0))
    await world.run()
    expect(await statusOf(id)).toBe('completed')
    expect((await world.events()).map(({ type }) => type)).toEqual(['campaign.sent', 'campaign.completed'])
  })

  test('a campaign is not completed before the last email had its first attempt', async () => {
    const id = await start(await world.addAudience(1))
    await world.run()
    await world.time.advance(60_000)
    await world.run()
    expect(await statusOf(id)).toBe('sending')
    await world.handOver()
    await world.time.advance(1_000)
    await world.run()
    expect(await statusOf(id)).toBe('completed')
  })

  test('a turn makes as many emails as may be made at once', async () => {
    await start(await world.addAudience(400))
    const bulkPause = { over: () => Promise.resolve(), atOnce: (most: number) => most / 4 }
    const take = createEngine({ ...world.means, bulkPause })
    while ((await world.statuses()).queued === undefined) await world.turn(take)
    expect(await world.statuses()).toEqual({ queued: 50, waiting: 350 })
    await world.turn()
    expect(await world.statuses()).toEqual({ queued: 250, waiting: 150 })
  })

  test('recipients are listed and deleted as many as may be taken at once', async () => {
    const id = await start(await world.addAudience(600))
    const take = createEngine({
      ...world.means,
      bulkPause: { over: () => Promise.resolve(), atOnce: (most) => most / 40 },
    })
    const stored = async () => Object.values(await world.statuses()).reduce((sum, count) => sum + count, 0)
    const turns = async (count: number) => {
      const left: number[] = []
      for (let turn = 0; turn < count; turn++) {
        await world.turn(take)
        left.push(await stored())
      }
      return left
    }
    expect(await turns(3)).toEqual([250, 500, 600])
    await world.campaigns.cancel(world.db, world.live, id)
    await world.campaigns.delete(world.db, world.live, id)
    expect(await turns(3)).toEqual([350, 100, 0])
  })

  test('content is rendered for each person', async () => {
    const audience = await world.addAudience(1)
    await start(audience, {
      subject: 'Hello {{ contact.firstName }}',
      content: { text: '{{ contact.email }} {{ campaign.name }} {{ account.name }} {{ unsubscribeUrl }}' },
    })
    await world.run()
    const [address] = await world.written()
    const email = await world.db.selectFrom('emails').select(['id', 'subject']).executeTakeFirstOrThrow()
    const content = await world.db.selectFrom('email_contents').select('text').executeTakeFirstOrThrow()
    expect(email.subject).toBe('Hello Ada')
    const url = world.means.unsubscribeUrl({
      emailId: email.id,
      position: 0,
      accountId: world.account,
      address: address ?? '',
    })
    expect(content.text).toBe(`${address} Spring news Ours ${url}`)
  })
})

test('an audience that changes leaves out who joins after the campaign started, and who was unsubscribed before', async () => {
  const audience = await world.addAudience(2)
  const [gone = ''] = await world.addPeople(audience, 1)
  await world.contacts.update(
    world.db,
    world.live,
    { audienceId: audience, subscriberId: gone },
    { status: 'unsubscribed' },
  )
  const id = await start(audience)
  await world.turn()
  expect(await statusOf(id)).toBe('sending')
  await world.time.advance(1)
  await world.addPeople(audience, 1)
  await finish()
  expect(await world.statuses()).toEqual({ handed_over: 2 })
})

test('an audience that changes skips who leaves, unsubscribes or is suppressed before their turn, and says so', async () => {
  const audience = await world.addAudience(1)
  const [left = '', deleted = '', unsubscribed = '', everything = '', suppressed = ''] = await world.addPeople(
    audience,
    5,
  )
  const id = await start(audience)
  await world.turn()
  const key = (subscriberId: string) => ({ audienceId: audience, subscriberId })
  await world.contacts.remove(world.db, world.live, key(left))
  await world.subscribers.delete(world.db, world.live, deleted)
  await world.contacts.update(world.db, world.live, key(unsubscribed), { status: 'unsubscribed' })
  await world.subscribers.unsubscribe(world.db, world.live, everything)
  await world.suppressions.create(world.db, world.account, { address: `${suppressed}@example.org` })
  await finish()
  expect(await world.campaigns.statistics(world.db, world.live, id)).toMatchObject({
    recipients: 6,
    handedOver: 1,
    skipped: { left: 2, unsubscribed: 2, suppressed: 1 },
  })
  expect(await world.written()).toHaveLength(1)
  expect((await world.events()).at(-1)).toEqual({
    type: 'campaign.completed',
    recipients: { total: 6, sent: 1, failed: 5, deferred: 0, skipped: 5 },
  })
})

test('an audience that is gone before the start cancels the campaign', async () => {
  const audience = await world.addAudience(1)
  const id = await start(audience)
  // The service refuses this; an operator can.
  await world.db.deleteFrom('contacts').where('audience_id', '=', audience).execute()
  await world.db.deleteFrom('audiences').where('id', '=', audience).execute()
  await world.run()
  expect(await world.campaigns.get(world.db, world.live, id)).toMatchObject({
    status: 'canceled',
    statusReason: 'The audience was deleted before the campaign started.',
  })
})

test('two workers that have the same campaign in hand write to each person once', async () => {
  const audience = await world.addAudience(700)
  const id = await start(audience)
  const others = [createEngine(world.means), createEngine(world.means)]
  for (let round = 0; round < 8; round++) {
    const claimed = await claimCampaigns(world.db, 10, 1_000)
    // As if the lease had lapsed while the first one was rendering.
    await Promise.all(claimed.flatMap((campaign) => others.map((take) => take(campaign))))
    await world.time.advance(1_000)
  }
  await finish()
  expect(await statusOf(id)).toBe('completed')
  expect(await world.written()).toHaveLength(700)
  expect(await world.events()).toHaveLength(2)
})

test('two workers take turns between accounts: one campaign of each is claimed at a time', async () => {
  const audience = await world.addAudience(1)
  await start(audience)
  await start(audience)
  expect(await claimCampaigns(world.db, 10, 1_000)).toHaveLength(1)
  expect(await claimCampaigns(world.db, 10, 1_000)).toHaveLength(1)
  expect(await claimCampaigns(world.db, 10, 1_000)).toHaveLength(0)
  await world.time.advance(1_000)
  expect(await claimCampaigns(world.db, 10, 1_000)).toHaveLength(1)
})

test('pausing takes queued emails back, and nobody is lost or doubled after it is resumed', async () => {
  const audience = await world.addAudience(450)
  const id = await start(audience)
  await world.turn()
  await world.turn()
  expect(await world.statuses()).toEqual({ queued: 200, waiting: 250 })
  await world.campaigns.pause(world.db, world.live, id)
  expect(await world.statuses()).toEqual({ waiting: 450 })
  expect(await world.due()).toEqual([])
  await world.run()
  expect(await world.statuses()).toEqual({ waiting: 450 })
  await world.campaigns.resume(world.db, world.live, id)
  await finish()
  expect(await world.statuses()).toEqual({ handed_over: 450 })
  expect(await world.written()).toHaveLength(450)
})

test('pausing leaves an email alone that is in a conversation, and counts it', async () => {
  const id = await start(await world.addAudience(2))
  await world.run()
  const [first] = await world.db.selectFrom('emails').select('id').execute()
  const emailId = first?.id ?? ''
  await world.db.updateTable('emails').set({ status: 'sending' }).where('id', '=', emailId).execute()
  await world.db
    .updateTable('email_recipients')
    .set({ status: 'sending', attempt_count: 1 })
    .where('email_id', '=', emailId)
    .execute()
  await world.campaigns.pause(world.db, world.live, id)
  expect(await world.statuses()).toEqual({ queued: 1, waiting: 1 })
  await world.db.updateTable('email_recipients').set({ status: 'accepted' }).where('email_id', '=', emailId).execute()
  await world.time.advance(10_000)
  await world.run()
  expect(await world.campaigns.statistics(world.db, world.live, id)).toMatchObject({
    queued: 0,
    handedOver: 1,
    waiting: 1,
  })
})

test('pausing between rendering and writing keeps the batch from being written', async () => {
  const id = await start(await world.addAudience(5))
  await world.turn()
  const pausing = createEngine({
    ...world.means,
    renderer: {
      ...world.means.renderer,
      async renderFirst(content, people, limits) {
        await world.campaigns.pause(world.db, world.live, id)
        return world.means.renderer.renderFirst(content, people, limits)
      },
    },
  })
  await world.turn(pausing)
  expect(await world.statuses()).toEqual({ waiting: 5 })
  expect(await world.written()).toEqual([])
})

test('canceling cancels queued emails, and counts who gets nothing', async () => {
  const id = await start(await world.addAudience(250))
  await world.turn()
  await world.turn()
  await world.campaigns.cancel(world.db, world.live, id)
  expect(await world.due()).toEqual([])
  const statuses = await world.db.selectFrom('emails').select('status').distinct().execute()
  expect(statuses).toEqual([{ status: 'canceled' }])
  expect(await world.campaigns.statistics(world.db, world.live, id)).toMatchObject({
    recipients: 250,
    waiting: 0,
    queued: 0,
    canceled: 250,
  })
  const page = await world.campaigns.recipients(world.db, world.live, id, { limit: 100, status: 'canceled' })
  expect(page.data).toHaveLength(100)
  await world.time.advance(60_000)
  await world.run()
  expect((await world.events()).map(({ type }) => type)).toEqual(['campaign.sent'])
})

test('faults of the sending domain pause the campaign and lose nobody', async () => {
  const id = await start(await world.addAudience(3))
  await world.turn()
  await world.db.updateTable('domains').set({ status: 'failed' }).execute()
  await world.run()
  const campaign = await world.campaigns.get(world.db, world.live, id)
  expect([campaign.status, campaign.statusReason]).toEqual(['paused', expect.stringContaining('is not verified')])
  await world.db.updateTable('domains').set({ status: 'verified' }).execute()
  await world.campaigns.resume(world.db, world.live, id)
  await finish()
  expect(await world.statuses()).toEqual({ handed_over: 3 })
})

describe('time', () => {
  test('a scheduled campaign starts at its time, not before', async () => {
    const id = await world.draft(await world.addAudience(1))
    await world.campaigns.send(world.db, world.live, id, new Date(world.time.clock.now().getTime() + 60_000))
    await world.run()
    expect(await statusOf(id)).toBe('scheduled')
    await world.time.advance(60_000)
    await world.run()
    expect(await statusOf(id)).toBe('sending')
  })

  test.each([
    ['send', 'sending'],
    ['skip', 'canceled'],
  ] as const)('a campaign with lateStart %s that is an hour late is %s', async (lateStart, status) => {
    const id = await world.draft(await world.addAudience(1), { lateStart })
    await world.campaigns.send(world.db, world.live, id, new Date(world.time.clock.now().getTime() + 60_000))
    await world.time.advance(3_660_000)
    await world.run()
    expect(await statusOf(id)).toBe(status)
  })

  test('a throttle holds over two workers, in every hour', async () => {
    await start(await world.addAudience(120), { throttle: 60 })
    const workers = [createEngine(world.means), createEngine(world.means)]
    const madeAt: number[] = []
    for (let minute = 0; minute < 100; minute++) {
      const claimed = await claimCampaigns(world.db, 10, 1_000)
      await Promise.all(claimed.flatMap((campaign) => workers.map((take) => take(campaign))))
      const handed = await world.handOver()
      for (let n = 0; n < handed; n++) madeAt.push(minute)
      await world.time.advance(60_000)
    }
    expect(madeAt.length).toBeGreaterThan(90)
    for (const from of madeAt)
      expect(madeAt.filter((at) => at >= from && at < from + 60).length).toBeLessThanOrEqual(60)
  })
})

test('a test campaign checks each email and sends none', async () => {
  const audience = await world.addAudience(3)
  const { id } = await world.campaigns.create(world.db, world.test, {
    name: 'Try',
    audienceId: audience,
    from: 'anybody@example.com',
    subject: 'Try',
    content: { text: 'Try' },
  })
  await world.campaigns.send(world.db, world.test, id, null)
  await world.run()
  await world.time.advance(1_000)
  await world.run()
  expect(await world.campaigns.get(world.db, world.test, id)).toMatchObject({ status: 'completed', recipients: 3 })
  expect(await world.db.selectFrom('emails').select(['status', 'mode']).distinct().execute()).toEqual([
    { status: 'validated', mode: 'test' },
  ])
  expect(await world.due()).toEqual([])
})
