import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { countedBounces } from '../../contract/deliverability.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { countBounces } from '../../server/emails/bounce-counts.ts'
import { mailboxProviderOf } from '../../server/statistics/mailbox-providers.ts'
import { live } from '../support/scope.ts'
import { createEmailWorld, type EmailWorld, good } from '../support/worlds/emails.ts'

let world: EmailWorld

beforeAll(async () => {
  world = await createEmailWorld()
})
afterAll(() => world.end())

type Sending = { scope?: EmailWorld['live']; from?: string; reason?: string; bounced?: string[] }

/** Sends an email that bounces for some of its recipients. */
async function bounce(
  to: string[],
  { scope = world.live, from = good.from, reason = 'Gone', bounced = to }: Sending = {},
) {
  const { db, emails } = world
  const { id } = await emails.send(db, scope, { ...good, from, to })
  await db.updateTable('emails').set({ status: 'bounced' }).where('id', '=', id).execute()
  await db
    .updateTable('email_recipients')
    .set({ status: 'bounced', reason })
    .where('email_id', '=', id)
    .where('address', 'in', bounced)
    .execute()
  await world.time.advance(1_000)
}

async function counted(domainId = world.domainId, scope = world.live) {
  return (await world.domains.deliverability(world.db, scope, domainId)).bounces
}

test('recipients that bounced are counted by their domain, the most first, with the latest reason', async () => {
  expect(await counted()).toEqual({ since: null, byRecipientDomain: [], byProvider: [] })
  const since = world.time.clock.now().toISOString()
  await bounce(['a@one.example'], { reason: '550 An older one' })
  await bounce(['a@two.example', 'b@two.example', 'c@three.example'], { bounced: ['a@two.example', 'b@two.example'] })
  await bounce(['b@one.example', 'c@one.example'], { reason: '550 5.1.1 No such user' })
  await world.emails.send(world.db, world.live, { ...good, to: 'kept@four.example' })
  expect(await counted()).toEqual({
    since,
    byRecipientDomain: [
      { domain: 'one.example', bounced: 3, reason: '550 5.1.1 No such user' },
      { domain: 'two.example', bounced: 2, reason: 'Gone' },
    ],
    byProvider: [
      { kind: 'domain', name: 'one.example', bounced: 3, reason: '550 5.1.1 No such user' },
      { kind: 'domain', name: 'two.example', bounced: 2, reason: 'Gone' },
    ],
  })
})

test('recipients that bounced at the domains of one mailbox provider are counted together', async () => {
  await bounce(['a@gmail.com', 'b@gmail.com'], { reason: '552 5.2.2 Over quota' })
  await bounce(['a@googlemail.com', 'b@googlemail.com'], { reason: '550 5.1.1 <b@googlemail.com> unknown' })
  await bounce(['c@gmail.com'], { reason: '452 4.2.2 Over quota' })
  const { byRecipientDomain, byProvider } = await counted()
  const ofGmail = byRecipientDomain.filter(({ domain }) => mailboxProviderOf(domain) === 'Gmail')
  expect(ofGmail).toMatchObject([
    { domain: 'gmail.com', bounced: 3 },
    { domain: 'googlemail.com', bounced: 2 },
  ])
  expect(byProvider[0]).toEqual({ kind: 'provider', name: 'Gmail', bounced: 5, reason: '452 4.2.2 Over quota' })
  expect(byProvider.map(({ name }) => name)).not.toContain('googlemail.com')
  await bounce(['c@googlemail.com'], { reason: '550 5.1.1 <c@googlemail.com> unknown' })
  expect((await counted()).byProvider[0]).toMatchObject({ bounced: 6, reason: '550 5.1.1 <…> unknown' })
})

test('bounces of another domain of the account hide none, and cost nothing', async () => {
  const { db } = world
  const other = await world.domains.create(db, world.live, { name: 'newsletter.test' })
  const before = await counted()
  await bounce(['a@reader.example'], { from: 'hello@newsletter.test' })
  // As many again, newer than all of the first domain.
  await sql`
    INSERT INTO emails SELECT copy.* FROM emails e, generate_series(1, ${10 * countedBounces}::int) n,
      json_populate_record(NULL::emails, (to_jsonb(e) || jsonb_build_object('id', 'email_z' || lpad(n::text, 25, '0')))::json) AS copy
    WHERE e.domain_id = ${other.id}
  `.execute(db)
  await sql`ANALYZE emails`.execute(db)
  expect(await counted()).toEqual(before)
  const read = await inTransaction(db, async (trx) => {
    await countBounces(trx, world.live, world.domainId)
    const { rows } = await sql<{ count: number }>`
      SELECT (seq_tup_read + idx_tup_fetch)::float8 AS count FROM pg_stat_xact_user_tables WHERE relname = 'emails'
    `.execute(trx)
    return rows[0]?.count
  })
  // The planner looks at the ends of indexes.
  expect(read).toBeLessThan(100)
})

test('emails of another domain or account do not count, nor test emails', async () => {
  const before = await counted()
  const other = await world.domains.create(world.db, world.live, { name: 'other.test' })
  await world.domains.create(world.db, live(world.stranger), { name: 'theirs.test' })
  await bounce(['a@five.example'], { from: 'hello@other.test' })
  await bounce(['a@six.example'], { scope: world.test })
  await bounce(['a@seven.example'], { scope: live(world.stranger), from: 'hello@theirs.test' })
  expect(await counted()).toEqual(before)
  expect((await counted(other.id)).byRecipientDomain.map(({ domain }) => domain)).toEqual(['five.example'])
})

test('in test mode nothing is counted: bounces of live emails are not shown', async () => {
  await bounce(['a@eight.example'])
  expect((await counted()).byRecipientDomain).not.toEqual([])
  expect(await counted(world.domainId, world.test)).toEqual({ since: null, byRecipientDomain: [], byProvider: [] })
})

test('a reason names no recipient', async () => {
  const reason = '550 5.1.1 <a.b+c@nine.example>: "a b"@nine.example, rcpt=x@nine.example unknown'
  await bounce(['a@nine.example'], { reason })
  const { byRecipientDomain } = await counted()
  expect(byRecipientDomain.find(({ domain }) => domain === 'nine.example')?.reason).toBe('550 5.1.1 <…>: …, … unknown')
})

test('bounces of test emails hide none of live ones', async () => {
  const { db, emails } = world
  await bounce(['a@ten.example'])
  const to = Array.from({ length: countedBounces }, (_, at) => `a@simulated-${at}.example`)
  for (const address of to) await emails.send(db, world.test, { ...good, to: address })
  await db.updateTable('emails').set({ status: 'bounced' }).where('mode', '=', 'test').execute()
  expect((await counted()).byRecipientDomain.map(({ domain }) => domain)).toContain('ten.example')
})

test(`only the newest ${countedBounces} bounced emails of a domain are read, and 20 groups are returned`, async () => {
  const newest = Array.from({ length: countedBounces }, (_, at) => `a@many-${at % 30}.example`)
  for (const to of newest) await bounce([to])
  const { byRecipientDomain, byProvider } = await counted()
  expect(byRecipientDomain).toHaveLength(20)
  expect(byRecipientDomain.every(({ domain }) => domain.startsWith('many-'))).toBe(true)
  expect(byProvider.map(({ name }) => name)).toEqual(byRecipientDomain.map(({ domain }) => domain))
})
