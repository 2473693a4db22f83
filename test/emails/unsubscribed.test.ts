import { afterAll, beforeAll, expect, test } from 'vitest'
import { countUnsubscribed } from '../../server/email-delivery/count-unsubscribed.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { newId } from '../../server/shared/ids.ts'
import { unsubscribeByLink } from '../../server/subscribers/one-click.ts'
import { seedEmail } from '../support/emails.ts'
import { live } from '../support/scope.ts'
import { createEmailWorld, type EmailWorld, good } from '../support/worlds/emails.ts'

/* The lasting effects of an unsubscribe by the link of an email, whatever else happens to the address. */

let world: EmailWorld
let audienceId: string

beforeAll(async () => {
  world = await createEmailWorld()
  audienceId = (await world.audiences.create(world.db, live(world.account), { name: 'News' })).id
})
afterAll(() => world.end())

async function unsubscribe(address: string): Promise<string> {
  const { db, account, subscribers, time, outbox } = world
  const emailId = newId('email', time.clock.now())
  const means = { clock: time.clock, outbox, subscribers, count: countUnsubscribed }
  await unsubscribeByLink(db, means, { accountId: account, address, emailId, position: 0 })
  return emailId
}

/** As it comes back from the address. Answers of which email. */
async function learn(address: string, kind: 'bounced' | 'complained', source?: 'notification'): Promise<string> {
  const { db, account, outbox, time } = world
  const at = time.clock.now()
  const emailId = await seedEmail(db, { accountId: account, at, to: [address] })
  const about = { emailId, position: 0, at }
  const bounce = { bounceType: 'hard' as const, reason: 'Nobody.', reply: '550 5.1.1', host: null, ...about }
  const fact = kind === 'bounced' ? { kind, ...bounce } : { kind, feedbackType: 'abuse', ...about }
  await recordFacts(db, { outbox, ...(source && { source }) }, [fact])
  return emailId
}

async function statusOf(to: string, audience = audienceId): Promise<string> {
  const { db, live, emails } = world
  return (await emails.send(db, live, { ...good, to, audienceId: audience })).status
}

async function entryOf(address: string) {
  const { db, account, suppressions } = world
  const { data } = await suppressions.list(db, account, { address, limit: 10 })
  return data[0]
}

const takeOff = (address: string) => world.suppressions.delete(world.db, live(world.account), address)

test.each(['bounced', 'complained', 'by hand'] as const)(
  'an unsubscribing outlasts what comes after it: %s',
  async (how) => {
    const { db, account, suppressions } = world
    const address = `${how.replace(' ', '-')}@example.org`
    const emailId = await unsubscribe(address)
    const before = await entryOf(address)
    if (how === 'by hand') await suppressions.create(db, account, { address })
    else await learn(address, how)
    const reason = { bounced: 'hard_bounce', complained: 'complaint', 'by hand': 'manual' }[how]
    const at = before?.createdAt
    expect(await entryOf(address)).toMatchObject({ reason, unsubscribedAt: at })
    await takeOff(address)
    expect(await entryOf(address)).toEqual(before)
    expect(before).toMatchObject({ reason: 'unsubscribe', source: 'unsubscribe_link', emailId, unsubscribedAt: at })
    expect(await statusOf(address)).toBe('suppressed')
    await takeOff(address)
    expect(await statusOf(address)).toBe('queued')
  },
)

test('an unsubscribing of an address that is there for another reason outlasts that, with the first link that was followed', async () => {
  const { time } = world
  await learn('late@example.org', 'bounced')
  expect(await entryOf('late@example.org')).toMatchObject({ unsubscribedAt: null })
  const at = time.clock.now().toISOString()
  const emailId = await unsubscribe('late@example.org')
  await time.advance(60_000)
  await unsubscribe('LATE@example.org')
  await learn('late@example.org', 'complained')
  expect(await entryOf('late@example.org')).toMatchObject({ reason: 'complaint', unsubscribedAt: at })
  await takeOff('late@example.org')
  expect(await entryOf('late@example.org')).toMatchObject({ reason: 'unsubscribe', emailId, createdAt: at })
  expect(await statusOf('late@example.org')).toBe('suppressed')
})

test('an unsubscribing is taken back by who makes the person active, and what else the address is there for stays', async () => {
  const { db, account, subscribers } = world
  const { id } = await subscribers.create(db, live(account), { email: 'Back@example.org' })
  await unsubscribe('back@example.org')
  expect(await statusOf('back@example.org')).toBe('suppressed')
  await subscribers.update(db, live(account), id, { firstName: 'Ada' })
  expect(await entryOf('back@example.org')).toMatchObject({ reason: 'unsubscribe' })
  await subscribers.update(db, live(account), id, { status: 'active' })
  expect(await entryOf('back@example.org')).toBeUndefined()
  expect(await statusOf('back@example.org')).toBe('queued')

  await unsubscribe('back@example.org')
  await learn('back@example.org', 'bounced')
  await subscribers.update(db, live(account), id, { status: 'active' })
  expect(await entryOf('back@example.org')).toMatchObject({ reason: 'hard_bounce', unsubscribedAt: null })
  await takeOff('back@example.org')
  expect(await statusOf('back@example.org')).toBe('queued')
})

test('an unsubscribing is taken back also where the person became one later, and in one account only', async () => {
  const { db, account, stranger, subscribers } = world
  await unsubscribe('later@example.org')
  const theirs = await subscribers.create(db, live(stranger), { email: 'later@example.org' })
  await subscribers.update(db, live(stranger), theirs.id, { status: 'active' })
  const ours = await subscribers.create(db, live(account), { email: 'later@example.org' })
  expect(await statusOf('later@example.org')).toBe('suppressed')
  await subscribers.update(db, live(account), ours.id, { status: 'active' })
  expect(await statusOf('later@example.org')).toBe('queued')
})

test('the source of an entry is where it was learned', async () => {
  const { db, account, suppressions } = world
  const answered = await learn('answered@example.org', 'bounced')
  const notified = await learn('notified@example.org', 'bounced', 'notification')
  const reported = await learn('reported@example.org', 'complained', 'notification')
  await suppressions.create(db, account, { address: 'manual@example.org' })
  expect(await entryOf('answered@example.org')).toMatchObject({ source: 'smtp_answer', emailId: answered })
  expect(await entryOf('notified@example.org')).toMatchObject({ source: 'notification', emailId: notified })
  expect(await entryOf('reported@example.org')).toMatchObject({ source: 'feedback_report', emailId: reported })
  expect(await entryOf('manual@example.org')).toMatchObject({ source: 'api', emailId: null })
})
