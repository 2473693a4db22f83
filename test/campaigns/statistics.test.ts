import { sql } from 'kysely'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { campaignLimits } from '../../contract/campaign-resource.ts'
import { countUnsubscribed } from '../../server/email-delivery/count-unsubscribed.ts'
import type { RecipientFact } from '../../server/email-delivery/recipient-facts.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { rollUp } from '../../server/statistics/roll-up.ts'
import { unsubscribeByLink } from '../../server/subscribers/one-click.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
const world: CampaignWorld = await createCampaignWorld(renderer)
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  await renderer[Symbol.asyncDispose]()
})

const shop = 'https://shop.example'
const html = `<a href="${shop}/a">A</a> <a href="${shop}/{{ contact.id }}">You</a> <a href="${shop}/b?c=1&amp;d">B</a>`
const visitor = { userAgent: null, ipAddress: null, position: 0 }

let id: string
/** The emails of the campaign by domain of their recipient, in the order of the people. */
let emails: { id: string; subscriberId: string; domain: string }[]

async function send(people: Record<string, number>, fields = {}): Promise<void> {
  const audience = await world.addAudience(0)
  for (const [domain, count] of Object.entries(people)) await world.addPeople(audience, count, domain)
  id = await world.draft(audience, { content: { html }, trackOpens: true, trackClicks: true, ...fields })
  await world.start(id)
  await world.run()
  await world.handOver()
  const { rows } = await sql<{ id: string; subscriberId: string; domain: string }>`
    SELECT email_id AS id, subscriber_id AS "subscriberId", split_part(address, '@', 2) AS domain
    FROM campaign_recipients JOIN email_recipients USING (email_id)
    WHERE campaign_id = ${id} ORDER BY subscriber_id
  `.execute(world.db)
  emails = rows
}

const at = () => world.time.clock.now()
const clicked = (emailId: string, link: string, automated = false): RecipientFact => ({
  ...visitor,
  kind: 'clicked',
  emailId,
  link,
  automated,
  at: at(),
})
const opened = (emailId: string): RecipientFact => ({ ...visitor, kind: 'opened', emailId, automated: false, at: at() })
const record = (...facts: RecipientFact[]) => recordFacts(world.db, { outbox: world.outbox }, facts)
const statistics = () => world.campaigns.statistics(world.db, world.live, id)

async function rollUpAll(): Promise<void> {
  let after = await rollUp(world.db, null)
  while (after !== null) after = await rollUp(world.db, after)
}

describe('the statistics of a campaign', () => {
  beforeEach(() => send({ 'gmail.com': 3, 'firma.example': 1, 'hotmail.com': 1, 'outlook.com': 1 }))

  test('the statistics of a campaign count people and visits by hour, day, link and provider, before and after a roll-up', async () => {
    const [one, two, three, , other] = emails.map((email) => email.id)
    const personal = `${shop}/${emails[0]?.subscriberId}`
    await record(opened(one ?? ''), opened(one ?? ''), opened(two ?? ''))
    await record(clicked(one ?? '', `${shop}/a`), clicked(one ?? '', `${shop}/a`), clicked(one ?? '', personal))
    await record(clicked(two ?? '', `${shop}/a`), clicked(other ?? '', `${shop}/b?c=1&d`, true))
    await record(clicked(three ?? '', 'https://elsewhere.example/'))

    const before = await statistics()
    expect(before.emails).toMatchObject({
      sent: 6,
      delivered: 6,
      opened: 2,
      opens: 3,
      clicked: 4,
      clicks: 5,
      unsubscribed: 0,
    })
    expect(before.hours).toEqual([{ start: '2026-03-01T09:00:00.000Z', ...before.emails }])
    expect(before.days).toEqual([{ start: '2026-03-01T00:00:00.000Z', ...before.emails }])
    expect(before.links).toEqual([
      { link: `${shop}/a`, clicked: 2, clicks: 3 },
      { link: `${shop}/{{ contact.id }}`, clicked: 1, clicks: 1 },
      { link: `${shop}/b?c=1&d`, clicked: 1, clicks: 0 },
      { link: null, clicked: 1, clicks: 1 },
    ])
    expect(before.providers).toMatchObject([
      { kind: 'provider', name: 'Gmail', sent: 3, opened: 2, clicked: 3 },
      { kind: 'provider', name: 'Outlook', sent: 2, clicked: 1, clicks: 0 },
      { kind: 'domain', name: 'firma.example', sent: 1, clicked: 0 },
    ])
    await rollUpAll()
    expect(await statistics()).toEqual(before)
    // Somebody who clicks again is no new person, also after the roll-up.
    await record(clicked(one ?? '', `${shop}/a`))
    expect((await statistics()).links[0]).toEqual({ link: `${shop}/a`, clicked: 2, clicks: 4 })
  })

  test('the statistics of a campaign count each person who unsubscribes with the link once, and nothing of a transaction that fails', async () => {
    const [email] = emails
    const { db, account, time, outbox, subscribers } = world
    const { email: address } = await subscribers.get(db, account, email?.subscriberId ?? '')
    const from = { accountId: account, emailId: email?.id ?? '', position: 0, address }
    const means = { clock: time.clock, outbox, subscribers, count: countUnsubscribed }
    const failing = { ...means, subscribers: { unsubscribe: () => Promise.reject(new Error('gone')) } }
    await expect(unsubscribeByLink(db, failing, from)).rejects.toThrow('gone')
    expect((await statistics()).emails.unsubscribed).toBe(0)
    await unsubscribeByLink(db, means, from)
    await unsubscribeByLink(db, means, from)
    await unsubscribeByLink(db, means, { ...from, accountId: world.stranger, emailId: emails[1]?.id ?? '' })
    const { emails: counts, providers } = await statistics()
    expect(counts.unsubscribed).toBe(1)
    expect(providers[0]).toMatchObject({ name: 'Gmail', unsubscribed: 1 })
  })
})

test('the statistics of a campaign keep the largest providers apart, and the rest together is what is missing to the totals', async () => {
  const domains = Array.from({ length: campaignLimits.providers + 2 }, (_, n) => `d${n}.example`)
  await send(Object.fromEntries(domains.map((domain, n) => [domain, n < 2 ? 2 : 1])))
  await rollUpAll()
  const { providers, emails: totals } = await statistics()
  expect(providers).toHaveLength(campaignLimits.providers + 1)
  expect(providers.slice(0, 2)).toMatchObject([{ name: 'd0.example' }, { name: 'd1.example' }])
  expect(providers.at(-1)).toMatchObject({ kind: 'other', name: null, sent: 2, delivered: 2 })
  expect(providers.reduce((sum, { sent }) => sum + sent, 0)).toBe(totals.sent)
})

test('the statistics of a campaign have no links without tracked clicks, and at most a hundred', async () => {
  await send({ 'example.org': 1 }, { trackClicks: false })
  expect((await statistics()).links).toEqual([])
  const many = Array.from({ length: campaignLimits.links + 1 }, (_, n) => `<a href="${shop}/${n}">${n}</a>`).join('')
  await send({ 'example.org': 1 }, { content: { html: many } })
  await record(clicked(emails[0]?.id ?? '', `${shop}/99`), clicked(emails[0]?.id ?? '', `${shop}/100`))
  const { links } = await statistics()
  expect(links).toHaveLength(campaignLimits.links + 1)
  expect(links.slice(-2)).toEqual([
    { link: `${shop}/99`, clicked: 1, clicks: 1 },
    { link: null, clicked: 1, clicks: 1 },
  ])
})
