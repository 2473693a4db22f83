import { sql } from 'kysely'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import type { CreateCampaign } from '../../contract/campaign-resource.ts'
import { createEngine } from '../../server/campaigns/engine.ts'
import { claimCampaigns } from '../../server/campaigns/engine-queries.ts'
import { survivingFailures } from '../../server/campaigns/failed-turns.ts'
import { countUnsubscribed } from '../../server/email-delivery/count-unsubscribed.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { rollUp } from '../../server/statistics/roll-up.ts'
import { live } from '../support/scope.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
afterAll(() => renderer[Symbol.asyncDispose]())

let world: CampaignWorld
beforeEach(async () => {
  world = await createCampaignWorld(renderer)
})
afterEach(() => world[Symbol.asyncDispose]())

const hourMs = 3_600_000
const people = 60
const abTest: NonNullable<CreateCampaign['abTest']> = {
  share: 50,
  winnerBy: 'opens',
  hours: 4,
  variants: [{ name: 'A' }, { name: 'B', subject: 'B for {{ contact.firstName }}' }],
}
const byHand = { ...abTest, winnerBy: 'manual' as const, hours: undefined }
/** As people get it. */
const subjects = { A: 'Spring', B: 'B for Ada' }

const get = (id: string) => world.campaigns.get(world.db, world.live, id)
const statistics = (id: string) => world.campaigns.statistics(world.db, world.live, id)
const choose = (id: string, variant: string) => world.campaigns.chooseWinner(world.db, world.live, id, variant)

async function start(fields: Partial<CreateCampaign> = {}, count = people): Promise<string> {
  const id = await world.draft(await world.addAudience(count), {
    abTest,
    trackOpens: true,
    trackClicks: true,
    ...fields,
  })
  await world.start(id)
  return id
}

type Sent = { email: string; variant: number | null; subject: string; ofRecipient: number | null }

/** The emails of a campaign, with the variant of their recipients. */
async function sentOf(id: string): Promise<Sent[]> {
  const { rows } = await sql<Sent>`
    SELECT e.id AS email, e.variant, e.subject, r.variant AS "ofRecipient"
    FROM campaign_recipients r JOIN emails e ON e.id = r.email_id WHERE r.campaign_id = ${id}
  `.execute(world.db)
  return rows
}

async function visit(kind: 'opened' | 'clicked', emails: readonly Sent[], { automated = false } = {}): Promise<void> {
  const at = world.time.clock.now()
  const about = { userAgent: null, ipAddress: null, position: 0, link: 'https://shop.example', automated, at }
  await recordFacts(
    world.db,
    { outbox: world.outbox },
    emails.map(({ email: emailId }) => ({ ...about, kind, emailId })),
  )
}

const of = (sent: readonly Sent[], variant: number | null) => sent.filter((one) => one.variant === variant)

test('a test whose winner is chosen by opens is sent to its share, waits its hours, and the rest gets what most people opened, machines left out', async () => {
  const id = await start()
  await world.deliver()
  const tested = await sentOf(id)
  expect(new Set(tested.map(({ variant }) => variant))).toEqual(new Set([0, 1]))
  for (const { variant, ofRecipient, subject } of tested) {
    expect(variant).toBe(ofRecipient)
    expect(subject).toBe(variant === 0 ? subjects.A : subjects.B)
  }
  expect(tested.length).toBeLessThan(people)
  const before = await get(id)
  expect(before).toMatchObject({ status: 'sending', waitingFor: { reason: 'ab_test' } })
  expect(before.abTest).toMatchObject({ ...abTest, winner: null, decidedAt: null })
  const until = new Date(before.waitingFor?.until ?? '')

  // A machine looks at every A, and each person who got B opens it twice.
  await visit('opened', of(tested, 0), { automated: true })
  await visit('opened', of(tested, 1))
  await visit('opened', of(tested, 1))
  const counted = await statistics(id)
  const [sentA, sentB] = [of(tested, 0).length, of(tested, 1).length]
  const nothing = { clicked: 0, unsubscribed: 0 }
  expect(counted.variants).toEqual([
    { name: 'A', people: sentA, sent: sentA, delivered: sentA, opened: 0, ...nothing },
    { name: 'B', people: sentB, sent: sentB, delivered: sentB, opened: sentB, ...nothing },
  ])
  let rolledUp = await rollUp(world.db, null)
  while (rolledUp !== null) rolledUp = await rollUp(world.db, rolledUp)
  expect((await statistics(id)).variants).toEqual(counted.variants)

  await world.time.set(new Date(until.getTime() - 1))
  expect(await world.turn()).toBe(0)
  expect(await sentOf(id)).toHaveLength(tested.length)
  await world.time.set(until)
  await world.deliver()
  const after = await get(id)
  expect(after).toMatchObject({ status: 'completed', waitingFor: null, abTest: { winner: 'B' } })
  expect(after.abTest?.decidedAt).toBe(until.toISOString())
  const sent = await sentOf(id)
  expect(sent).toHaveLength(people)
  expect(new Set(of(sent, null).map(({ subject }) => subject))).toEqual(new Set([subjects.B]))
  expect(await world.written()).toHaveLength(people)
  expect(await world.events()).toEqual([
    { type: 'campaign.sent', recipients: { total: people } },
    { type: 'campaign.completed', recipients: { total: people, sent: people, failed: 0, deferred: 0, skipped: 0 } },
  ])
  // Opens by the rest of the recipients do not count for the A/B test.
  await visit('opened', of(sent, null))
  expect((await statistics(id)).variants).toEqual(counted.variants)
  const { data } = await world.campaigns.recipients(world.db, world.live, id, { limit: 100 })
  const named = data.filter(({ variant }) => variant === 'B').length
  expect([named, data.length - named]).toEqual([people - sentA, sentA])
})

test('a test whose winner is chosen by opens without any open is the first', async () => {
  const id = await start()
  await world.deliver()
  await world.time.advance(4 * hourMs)
  await world.deliver()
  expect(await get(id)).toMatchObject({ status: 'completed', abTest: { winner: 'A' } })
})

test('a test whose winner is chosen by opens counts a click of a person once, and an unsubscribe', async () => {
  const id = await start({ abTest: { ...abTest, winnerBy: 'clicks', hours: 1 } })
  await world.deliver()
  const tested = await sentOf(id)
  const [one] = of(tested, 1)
  if (one === undefined) throw new Error('nobody got B')
  await visit('clicked', of(tested, 0), { automated: true })
  await visit('clicked', [one])
  await visit('clicked', [one])
  const from = { accountId: world.account, emailId: one.email, position: 0, at: world.time.clock.now() }
  await world.db.transaction().execute((trx) => countUnsubscribed(trx, from))
  expect((await statistics(id)).variants).toMatchObject([
    { clicked: 0, unsubscribed: 0 },
    { clicked: 1, unsubscribed: 1 },
  ])
  await world.time.advance(hourMs)
  await world.deliver()
  expect(await get(id)).toMatchObject({ abTest: { winner: 'B' } })
})

test('a test whose winner is chosen by opens is decided at its time while it is paused, when it goes on', async () => {
  const id = await start()
  await world.deliver()
  await visit('opened', of(await sentOf(id), 1))
  await world.campaigns.pause(world.db, world.live, id)
  expect(await get(id)).toMatchObject({ status: 'paused', waitingFor: null })
  await world.time.advance(5 * hourMs)
  expect(await world.turn()).toBe(0)
  expect(await get(id)).toMatchObject({ abTest: { winner: null } })
  await world.campaigns.resume(world.db, world.live, id)
  await world.deliver()
  expect(await get(id)).toMatchObject({ status: 'completed', abTest: { winner: 'B' } })
  expect(await world.written()).toHaveLength(people)
})

test('a test whose winner is chosen by opens that is canceled while it waits sends the rest nothing', async () => {
  const id = await start()
  await world.deliver()
  const tested = (await sentOf(id)).length
  expect((await world.campaigns.cancel(world.db, world.live, id)).waitingFor).toBeNull()
  await world.time.advance(5 * hourMs)
  expect(await world.turn()).toBe(0)
  expect(await sentOf(id)).toHaveLength(tested)
  expect(await statistics(id)).toMatchObject({ handedOver: tested, canceled: people - tested })
  const { data } = await world.campaigns.recipients(world.db, world.live, id, { status: 'canceled', limit: 100 })
  expect(new Set(data.map(({ variant }) => variant))).toEqual(new Set([null]))
  await expect(choose(id, 'A')).rejects.toMatchObject({ code: 'campaign_state' })
})

test('a test whose winner is chosen by opens is decided and sent once by two workers, with what is paused and taken back in between', async () => {
  const id = await start({ abTest: { ...abTest, hours: 1 } }, 900)
  const workers = [createEngine(world.means), createEngine(world.means)]
  for (let n = 0; (await get(id)).endedAt === null; n++) {
    const claimed = await claimCampaigns(world.db, 10, 1_000)
    await Promise.all(claimed.flatMap((campaign) => workers.map((take) => take(campaign))))
    // It may have ended in this turn.
    if (n % 4 === 1 && (await get(id)).endedAt === null) {
      await world.campaigns.pause(world.db, world.live, id)
      await world.campaigns.resume(world.db, world.live, id)
    }
    if (n % 2 === 0) await world.handOver()
    const { waitingFor } = await get(id)
    if (waitingFor?.until != null) await world.time.set(new Date(waitingFor.until))
    else await world.time.advance(1_000)
  }
  const sent = await sentOf(id)
  expect(sent).toHaveLength(900)
  expect(await world.written()).toHaveLength(900)
  expect(new Set(await world.written()).size).toBe(900)
  for (const { variant, ofRecipient, subject } of sent) {
    expect(variant).toBe(ofRecipient)
    expect(subject).toBe(variant === 1 ? subjects.B : subjects.A)
  }
  expect(await world.events()).toHaveLength(2)
})

test('a test whose winner is chosen by opens is decided as a whole or not at all, and tried again', async () => {
  const id = await start()
  await world.deliver()
  await sql`
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$
    `.execute(world.db)
  // The last statement of the turn.
  await sql`
      CREATE TRIGGER refuses BEFORE UPDATE OF due_at ON campaigns FOR EACH ROW
      WHEN (OLD.ab_winner IS NOT NULL) EXECUTE FUNCTION refuse()
    `.execute(world.db)
  await world.time.advance(4 * hourMs)
  const logger = createLogger({ level: 'silent' })
  const take = survivingFailures(createEngine(world.means), { db: world.db, logger })
  await world.turn(take)
  expect(await get(id)).toMatchObject({ status: 'sending', abTest: { winner: null, decidedAt: null } })
  await sql`DROP TRIGGER refuses ON campaigns`.execute(world.db)
  await world.time.advance(2_000)
  while ((await world.turn(take)) > 0);
  expect(await get(id)).toMatchObject({ statusReason: null, abTest: { winner: 'A' } })
})

test('a test whose winner is chosen by hand waits without an end, until a variant is chosen', async () => {
  const id = await start({ abTest: byHand, trackOpens: false })
  await world.run()
  await expect(choose(id, 'B')).rejects.toMatchObject({ code: 'campaign_state', message: /still sending its test/ })
  await world.deliver()
  const waiting = { status: 'sending', waitingFor: { reason: 'ab_test', until: null }, abTest: { hours: null } }
  expect(await get(id)).toMatchObject(waiting)
  await world.time.advance(1_000 * hourMs)
  expect(await world.turn()).toBe(0)
  await expect(choose(id, 'C')).rejects.toMatchObject({ code: 'rule_violation', details: [{ path: 'body.variant' }] })
  for (const scope of [world.test, live(world.stranger)]) {
    const asked = world.campaigns.chooseWinner(world.db, scope, id, 'B')
    await expect(asked).rejects.toMatchObject({ code: 'not_found' })
  }
  expect(await choose(id, 'B')).toMatchObject({ waitingFor: null, abTest: { winner: 'B' } })
  const { decidedAt } = (await choose(id, 'B')).abTest ?? {}
  await expect(choose(id, 'A')).rejects.toMatchObject({ code: 'campaign_state', message: /has the winner "B"/ })
  await world.deliver()
  expect(await get(id)).toMatchObject({ status: 'completed', abTest: { winner: 'B', decidedAt } })
  expect(new Set(of(await sentOf(id), null).map(({ subject }) => subject))).toEqual(new Set([subjects.B]))
  expect((await choose(id, 'B')).status).toBe('completed')
})

test('a test whose winner is chosen by hand can be decided before its hours are over, and while it is paused', async () => {
  const id = await start()
  await world.deliver()
  await world.campaigns.pause(world.db, world.live, id)
  const tested = await sentOf(id)
  expect(await choose(id, 'B')).toMatchObject({ status: 'paused', abTest: { winner: 'B' } })
  expect(await world.turn()).toBe(0)
  expect(await sentOf(id)).toHaveLength(tested.length)
  await world.campaigns.resume(world.db, world.live, id)
  await world.deliver()
  expect(await get(id)).toMatchObject({ status: 'completed', abTest: { winner: 'B' } })
  expect(await world.written()).toHaveLength(people)
})

test('a test whose winner is chosen by hand cannot be decided without a test, as a draft, and with a share of 100 %', async () => {
  const plain = await world.draft(await world.addAudience(1))
  await expect(choose(plain, 'A')).rejects.toMatchObject({ code: 'rule_violation' })
  const draft = await world.draft(await world.addAudience(1), { abTest: byHand })
  await expect(choose(draft, 'A')).rejects.toMatchObject({ code: 'campaign_state', message: /is draft/ })
  const whole = await start({ abTest: { ...byHand, share: 100 } })
  await world.deliver()
  await expect(choose(whole, 'A')).rejects.toMatchObject({ code: 'campaign_state', message: /no rest/ })
})

test('a test of everybody is completed when they were written to, and has no winner', async () => {
  const id = await start({ abTest: { ...abTest, share: 100 } })
  await world.deliver()
  expect(await get(id)).toMatchObject({ status: 'completed', abTest: { winner: null } })
  const sent = await sentOf(id)
  expect(sent).toHaveLength(people)
  expect(of(sent, null)).toEqual([])
  expect((await statistics(id)).variants.map((one) => one.people)).toEqual([of(sent, 0).length, of(sent, 1).length])
})

test('a test that by chance nobody is in sends the first variant at once', async () => {
  const id = await start(
    { abTest: { ...abTest, share: 1, variants: [{ name: 'A', subject: 'First' }, { name: 'B' }] } },
    0,
  )
  const { audience_id: audience } = await world.db
    .selectFrom('campaigns')
    .select('audience_id')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  await world.addPeople(audience, 1)
  await world.turn()
  // One of a hundred would be in it.
  await world.db.updateTable('campaign_recipients').set({ variant: null }).execute()
  await world.db
    .updateTable('campaigns')
    .set({ ab_people: [0, 0] })
    .execute()
  await world.deliver()
  expect((await sentOf(id)).map(({ subject }) => subject)).toEqual(['First'])
})

test('a test rests with its window, and each person keeps their variant when an email is taken back', async () => {
  await world.time.set(new Date('2026-03-28T16:00:00.000Z'))
  const id = await start({ sendWindow: { from: '09:00', to: '18:00', timezone: 'Europe/Berlin' } })
  await world.run()
  const before = await sentOf(id)
  await world.time.set(new Date('2026-03-28T17:00:00.200Z'))
  await world.run()
  expect(await sentOf(id)).toEqual([])
  expect(await get(id)).toMatchObject({ waitingFor: { reason: 'send_window' } })
  await world.time.set(new Date('2026-03-29T07:00:00.000Z'))
  await world.deliver()
  const after = await sentOf(id)
  expect(after).toHaveLength(before.length)
  expect(after.every(({ variant, ofRecipient }) => variant === ofRecipient && variant !== null)).toBe(true)
  // The hours pass outside of the window too; the rest waits for it.
  await world.time.set(new Date('2026-03-29T06:59:00.000Z'))
  await world.time.set(new Date('2026-03-29T15:59:59.000Z'))
  await world.run()
  expect(await get(id)).toMatchObject({ abTest: { winner: 'A' } })
  await world.deliver()
  expect(await get(id)).toMatchObject({ status: 'completed' })
})

test('a test is over as soon as its last email has left, also when the throttle has no room for an hour', async () => {
  const id = await start({ throttle: 1, abTest: { ...abTest, hours: 1 } }, 8)
  await world.run()
  const { variants } = await statistics(id)
  const inTest = variants.reduce((sum, one) => sum + one.people, 0)
  for (let sent = 0; sent < Math.max(1, inTest); sent += await world.handOver()) {
    await world.time.advance(hourMs + 10_000)
    await world.run()
  }
  await world.time.advance(200)
  await world.run()
  expect(await sentOf(id)).toHaveLength(Math.max(1, inTest))
  expect(await get(id)).toMatchObject({ waitingFor: inTest === 0 ? null : { reason: 'ab_test' } })
})
