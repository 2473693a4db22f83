import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import type { RecipientFact } from '../../server/email-delivery/recipient-facts.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { markSending } from '../../server/email-delivery/sending-queries.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'
import { live } from '../support/scope.ts'
import { miscounted, statisticsOf } from '../support/statistics.ts'

const at = new Date('2026-03-01T09:30:00.000Z')
const clock = { now: () => at }
const outbox = createOutbox({ clock, wake: () => undefined })
const visitor = { userAgent: null, ipAddress: null }
const host = 'mx.example.com'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** An account whose email is being sent to these many recipients. */
async function sending(recipients: number, email: { domainId?: string; tags?: string[] } = {}) {
  const { db } = database
  const accountId = await seedAccount(db, at)
  const to = Array.from({ length: recipients }, (_, position) => `person-${position}@example.com`)
  const emailId = await seedEmail(db, { accountId, at, to, domainId: email.domainId ?? null })
  if (email.tags !== undefined)
    await db.updateTable('emails').set({ tags: email.tags }).where('id', '=', emailId).execute()
  const begun = to.map((_, position) => ({ emailId, position }))
  await inTransaction(db, (trx) => markSending(trx, { begun, resent: [], at }))
  type Kind = RecipientFact extends infer Fact
    ? Fact extends RecipientFact
      ? Omit<Fact, 'emailId' | 'at'>
      : never
    : never
  const record = (...facts: Kind[]) =>
    recordFacts(
      db,
      { outbox, random: () => 0.5 },
      facts.map((fact) => ({ ...fact, emailId, at }) as RecipientFact),
    )
  const totals = async (query = {}) => (await statisticsOf(db, clock, live(accountId), query)).totals.emails
  return { record, totals }
}

const accepted = { kind: 'accepted', final: false, reply: '250 OK', host } as const
const delivered = { kind: 'delivered', reply: null, host } as const
const bounced = (bounceType: 'hard' | 'soft') =>
  ({ kind: 'bounced', bounceType, reason: 'Nobody.', reply: '550 5.1.1', host }) as const
const visit = (kind: 'opened' | 'clicked', automated: boolean) =>
  kind === 'opened'
    ? ({ kind, automated, ...visitor } as const)
    : ({ kind, automated, link: 'https://example.com/', ...visitor } as const)

test('what happens to recipients is counted as the events tell it, with its rates', async () => {
  const { record, totals } = await sending(5)
  await record(
    { ...accepted, position: 0 },
    { ...delivered, position: 0 },
    { ...accepted, position: 1 },
    { ...bounced('soft'), position: 1 },
    { ...bounced('hard'), position: 2 },
    { kind: 'deferred', reason: 'Later.', reply: null, host: null, unknown: false, position: 3 },
    { kind: 'suppressed', withheldFor: 'unsubscribed', reason: 'Unsubscribed.', position: 4 },
  )
  expect(await totals()).toMatchObject({
    sent: 2,
    delivered: 1,
    bounced: 2,
    hardBounced: 1,
    rejected: 1,
    delayed: 1,
    suppressed: 1,
    failed: 0,
    rates: { delivery: 0.333333, bounce: 0.666667, complaint: 0, open: 0 },
  })
  expect(await miscounted(database.db)).toEqual([])
})

test('what happens to recipients is counted once, however often it is told', async () => {
  const { record, totals } = await sending(1)
  for (let time = 0; time < 3; time++) await record({ ...accepted, position: 0 }, { ...delivered, position: 0 })
  await record({ kind: 'complained', feedbackType: 'abuse', position: 0 })
  await record({ kind: 'complained', feedbackType: 'abuse', position: 0 })
  expect(await totals()).toMatchObject({ sent: 1, delivered: 1, complained: 1, rates: { complaint: 1 } })
})

test('what happens to recipients as opens and clicks is counted each time, the first for its own, and machines apart', async () => {
  const { record, totals } = await sending(2)
  await record({ ...accepted, position: 0 }, { ...accepted, position: 1 })
  await record({ ...visit('opened', true), position: 0 })
  await record({ ...visit('opened', false), position: 0 }, { ...visit('opened', false), position: 1 })
  await record({ ...visit('clicked', false), position: 1 }, { ...visit('clicked', false), position: 1 })
  await record({ ...visit('clicked', true), position: 1 })
  expect(await totals()).toMatchObject({
    opened: 2,
    opens: 2,
    automatedOpens: 1,
    clicked: 1,
    clicks: 2,
    automatedClicks: 1,
    rates: { open: 1, click: 0.5 },
  })
})

test('what happens to recipients is counted for the domain and each tag, whatever characters a tag has', async () => {
  const tags = ['news', `a "b" {c}, \\d '`]
  const { record, totals } = await sending(2, { domainId: 'dom_a', tags })
  await record({ ...accepted, position: 0 }, { ...accepted, position: 1 })
  for (const query of [{}, { domainId: 'dom_a' }, ...tags.map((tag) => ({ tag }))]) {
    expect(await totals(query)).toMatchObject({ sent: 2 })
  }
  expect(await totals({ domainId: 'dom_b' })).toMatchObject({ sent: 0, rates: { delivery: null, bounce: null } })
})

test('what happens to recipients is not counted when its transaction rolls back', async () => {
  const { record, totals } = await sending(1)
  const fails = { ...accepted, position: 0, at }
  const means = { outbox: { append: () => Promise.reject(new Error('no room')) } }
  const emailId = (await database.db.selectFrom('emails').select('id').orderBy('id', 'desc').limit(1).execute())[0]?.id
  await expect(recordFacts(database.db, means, [{ ...fails, emailId: emailId ?? '' }])).rejects.toThrow('no room')
  expect(await totals()).toMatchObject({ sent: 0 })
  await record({ ...accepted, position: 0 })
  expect(await totals()).toMatchObject({ sent: 1 })
})
