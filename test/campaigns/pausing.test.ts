import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { createEngine } from '../../server/campaigns/engine.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { factsAtOnce } from '../../server/email-delivery/conversation-plan.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { markSending, revertSending } from '../../server/email-delivery/sending-queries.ts'
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
      async renderFirst(content, people, limits) {
        const rendered = await world.means.renderer.renderFirst(content, people, limits)
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

test('an email that is to be tried again waits while its campaign is paused, and is counted once', async () => {
  const id = await world.draft(await world.addAudience(1))
  await world.start(id)
  await world.run()
  await world.told('deferred')
  await world.campaigns.pause(world.db, world.live, id)
  const counts = () => world.campaigns.statistics(world.db, world.live, id)
  expect(await counts()).toMatchObject({ recipients: 1, queued: 0, waiting: 0, handedOver: 1 })
  await world.time.advance(24 * 3_600_000)
  expect(await world.planned()).toMatchObject({ isHeld: true, conversations: [] })
  await world.campaigns.resume(world.db, world.live, id)
  expect(await world.planned()).toMatchObject({ isHeld: false, conversations: [{ recipients: [{ attempts: 1 }] }] })
  await world.told('accepted')
  await pass(3)
  expect(await statusOf(id)).toBe('completed')
  expect(await counts()).toMatchObject({ recipients: 1, handedOver: 1, emails: { sent: 1 } })
})

test.each(['pause', 'cancel'] as const)(
  '%s leaves an email that a server may have from an attempt that nobody ended',
  async (how) => {
    const id = await world.draft(await world.addAudience(1))
    await world.start(id)
    await world.run()
    const { id: emailId } = await world.db.selectFrom('emails').select('id').executeTakeFirstOrThrow()
    const place = { emailId, position: 0 }
    const at = world.time.clock.now()
    await inTransaction(world.db, async (trx) => {
      // The process of the first attempt has died. The next one begins the second, and gives the email back.
      await markSending(trx, { begun: [place], resent: [], at })
      await markSending(trx, { begun: [place], resent: [], at })
      await revertSending(trx, [{ ...place, attempt: 2 }])
    })
    const take = world.means.emails[how === 'pause' ? 'takeBack' : 'cancelQueued']
    expect(await inTransaction(world.db, (trx) => take(trx, world.account, [emailId]))).toEqual([])
    await world.campaigns[how](world.db, world.live, id)
    expect(await world.campaigns.statistics(world.db, world.live, id)).toMatchObject({
      recipients: 1,
      handedOver: 1,
      waiting: 0,
      canceled: 0,
    })
    expect(await world.db.selectFrom('emails').select('id').execute()).toEqual([{ id: emailId }])
  },
)

/** Has the only email of a campaign be found in a pause, in the hands of a process that died. */
async function findLost(): Promise<string> {
  const id = await world.draft(await world.addAudience(1))
  await world.start(id)
  await world.run()
  const { id: emailId } = await world.db.selectFrom('emails').select('id').executeTakeFirstOrThrow()
  const at = world.time.clock.now()
  await inTransaction(world.db, (trx) => markSending(trx, { begun: [{ emailId, position: 0 }], resent: [], at }))
  await world.campaigns.pause(world.db, world.live, id)
  expect(await countsOf(id)).toMatchObject({ recipients: 1, queued: 1, handedOver: 0 })
  // Its claim has lapsed, and another process looks at it.
  await recordFacts(world.db, { outbox: world.outbox }, factsAtOnce(await world.planned(), at))
  return id
}

const countsOf = (id: string) => world.campaigns.statistics(world.db, world.live, id)

test('an email that a process had begun when it died is counted as handed over in a pause, and sent again right after it', async () => {
  const id = await findLost()
  await world.time.advance(2_000)
  await world.run()
  expect(await countsOf(id)).toMatchObject({ recipients: 1, queued: 0, waiting: 0, handedOver: 1, deferred: 1 })
  expect(await world.statuses()).toEqual({ handed_over: 1 })
  // Nothing is left to count.
  expect(await world.db.selectFrom('campaigns').select('due_at').execute()).toEqual([{ due_at: null }])
  await world.campaigns.resume(world.db, world.live, id)
  expect(await world.planned()).toMatchObject({ lost: [], conversations: [{ recipients: [{ isAnswerLost: true }] }] })
})

test('an email that a process had begun when it died ends right after its campaign is canceled, which can then be deleted', async () => {
  const id = await findLost()
  await world.campaigns.cancel(world.db, world.live, id)
  const facts = factsAtOnce(await world.planned(), world.time.clock.now())
  expect(facts).toMatchObject([{ kind: 'failed', reason: expect.stringContaining('the recipient may have it') }])
  await recordFacts(world.db, { outbox: world.outbox }, facts)
  await world.campaigns.delete(world.db, world.live, id)
})

test('an email that is to be tried again is canceled with its campaign', async () => {
  const id = await world.draft(await world.addAudience(1))
  await world.start(id)
  await world.run()
  await world.told('deferred')
  await world.campaigns.cancel(world.db, world.live, id)
  await world.time.advance(24 * 3_600_000)
  expect(await world.planned()).toMatchObject({ conversations: [], canceled: [{ attempts: 1 }] })
})

test('a duplicate of a campaign in any state is a draft of its own', async () => {
  const id = await world.draft(await world.addAudience(1), { throttle: 10, tags: ['spring'] })
  await world.start(id)
  await pass(3)
  expect(await statusOf(id)).toBe('completed')
  const copy = await world.campaigns.duplicate(world.db, world.live, id)
  expect(copy).toMatchObject({ status: 'draft', recipients: 0, startedAt: null, throttle: 10, tags: ['spring'] })
  await world.start(copy.id)
  await pass(3)
  expect(await statusOf(copy.id)).toBe('completed')
  expect(await world.written()).toHaveLength(2)
})

test('a test email is of no campaign, and changes no count', async () => {
  const id = await world.draft(await world.addAudience(1))
  await world.campaigns.test(world.db, world.live, id, { to: ['Grace <grace@example.org>'] })
  expect(await world.db.selectFrom('emails').select('campaign_id').execute()).toEqual([{ campaign_id: null }])
  await world.handOver()
  expect(await world.campaigns.statistics(world.db, world.live, id)).toMatchObject({
    recipients: 0,
    emails: { sent: 0 },
  })
  expect(await statusOf(id)).toBe('draft')
})
