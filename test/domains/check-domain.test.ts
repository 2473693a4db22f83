import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Domain } from '../../contract/domains.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { claimDomains } from '../../server/domains/queries.ts'
import { live } from '../support/scope.ts'
import { createDomainWorld, type DomainWorld, publish, statusesOf, withdraw } from '../support/worlds/domains.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

let world: DomainWorld
let counter = 0

beforeAll(async () => {
  world = await createDomainWorld()
})
afterEach(async () => {
  await world.db.deleteFrom('domains').execute()
  await world.emitted()
})
afterAll(() => world.end())

async function add(): Promise<Domain> {
  const domain = await world.domains.create(world.db, live(world.account), { name: `shop-${++counter}.example` })
  await world.emitted()
  return domain
}

function read({ id }: Domain): Promise<Domain> {
  return world.domains.get(world.db, world.account, id)
}

test('nothing is checked before its time', async () => {
  const domain = await add()
  world.moveClock(minuteMs - 1)
  expect(await world.runDueChecks()).toBe(0)
  expect(await read(domain)).toEqual(domain)
  world.moveClock(1)
  expect(await world.runDueChecks()).toBe(1)
  const checked = await read(domain)
  expect(checked).toMatchObject({ status: 'pending', lastCheckedAt: world.clock.now().toISOString() })
  expect(Date.parse(checked.nextCheckAt ?? '') - world.clock.now().getTime()).toBe(2 * minuteMs)
  expect(await world.runDueChecks()).toBe(0)
})

test('records that appear are found, and told of once', async () => {
  const domain = await add()
  world.moveClock(minuteMs)
  await world.runDueChecks()
  publish(world.dns, domain)
  world.moveClock(2 * minuteMs)
  await world.runDueChecks()
  expect(await read(domain)).toMatchObject({ status: 'verified', verifiedAt: world.clock.now().toISOString() })
  world.moveClock(dayMs)
  expect(await world.runDueChecks()).toBe(1)
  expect(await world.emitted()).toEqual([['domain.verified', { domainId: domain.id, domain: domain.name }]])
})

test('records that do not appear in 72 hours make the domain fail, and asking begins anew', async () => {
  const domain = await add()
  for (let hour = 0; hour <= 73; hour++) {
    world.moveClock(60 * minuteMs)
    await world.runDueChecks()
  }
  expect(await read(domain)).toMatchObject({ status: 'failed', nextCheckAt: null })
  publish(world.dns, domain)
  world.moveClock(dayMs)
  expect(await world.runDueChecks()).toBe(0)
  withdraw(world.dns, domain)
  const again = await world.domains.verify(world.db, live(world.account), domain.id)
  expect(again.status).toBe('pending')
  publish(world.dns, domain)
  world.moveClock(minuteMs)
  await world.runDueChecks()
  expect((await read(domain)).status).toBe('verified')
})

test('a verified domain that loses a record shows it, and has failed on the third day', async () => {
  const domain = await add()
  publish(world.dns, domain)
  await world.domains.verify(world.db, live(world.account), domain.id)
  await world.emitted()
  withdraw(world.dns, domain)
  const statuses: string[] = []
  for (let day = 0; day < 4; day++) {
    world.moveClock(dayMs)
    await world.runDueChecks()
    const { status, ...rest } = await read(domain)
    statuses.push(status)
    expect(statusesOf(rest).spf).toBe('missing')
  }
  expect(statuses).toEqual(['verified', 'verified', 'failed', 'failed'])
  expect(await world.emitted()).toEqual([])
  publish(world.dns, domain)
  await world.domains.verify(world.db, live(world.account), domain.id)
  expect(await world.emitted()).toEqual([['domain.verified', { domainId: domain.id, domain: domain.name }]])
})

test('all that are due are checked, however many; each by one of several processes', async () => {
  const added: string[] = []
  for (let i = 0; i < 110; i++) added.push(await addRow())
  world.moveClock(minuteMs)
  const counts = await Promise.all([world.runDueChecks(), world.runDueChecks(), world.runDueChecks()])
  expect(counts.reduce((sum, count) => sum + count)).toBe(110)
  const rows = await world.db.selectFrom('domains').select(['check_count', 'last_checked_at']).execute()
  expect(rows).toEqual(Array(added.length).fill({ check_count: 1, last_checked_at: world.clock.now() }))
})

test('what another process is taking at that moment is passed over, not waited for', async () => {
  for (let i = 0; i < 3; i++) await addRow()
  world.moveClock(minuteMs)
  const at = world.clock.now()
  await inTransaction(world.db, async (trx) => {
    const taken = await claimDomains(trx, { at, leasedUntil: new Date(at.getTime() + minuteMs), limit: 1 })
    expect(taken).toHaveLength(1)
    expect(await world.runDueChecks()).toBe(2)
  })
  expect(await world.runDueChecks()).toBe(0)
})

test('what a process had taken when it ended is checked five minutes later', async () => {
  const domain = await add()
  world.moveClock(minuteMs)
  world.dns.set(`send.${domain.name}`, 'silence')
  const ending = new AbortController()
  const run = world.runDueChecks(ending.signal)
  await expect.poll(() => world.dns.queries.some(({ name }) => name === `send.${domain.name}`)).toBe(true)
  ending.abort()
  expect(await run).toBe(1)
  expect((await read(domain)).lastCheckedAt).toBeNull()
  world.dns.unset(`send.${domain.name}`)
  world.moveClock(5 * minuteMs - 1)
  expect(await world.runDueChecks()).toBe(0)
  world.moveClock(1)
  expect(await world.runDueChecks()).toBe(1)
  expect((await read(domain)).lastCheckedAt).toBe(world.clock.now().toISOString())
})

test('one whose check cannot be written down keeps no other from being checked', async () => {
  const broken = await addRow()
  for (let i = 0; i < 3; i++) await addRow()
  await sql`ALTER TABLE domains ADD CONSTRAINT broken CHECK (id <> ${sql.lit(broken)} OR last_checked_at IS NULL)`.execute(
    world.db,
  )
  world.moveClock(minuteMs)
  expect(await world.runDueChecks()).toBe(4)
  const checked = await world.db.selectFrom('domains').select('id').where('last_checked_at', 'is not', null).execute()
  expect(checked).toHaveLength(3)
  await sql`ALTER TABLE domains DROP CONSTRAINT broken`.execute(world.db)
  world.moveClock(5 * minuteMs)
  await world.runDueChecks()
  const row = await world.db.selectFrom('domains').select('last_checked_at').where('id', '=', broken).executeTakeFirst()
  expect(row?.last_checked_at).toEqual(world.clock.now())
})

/** A domain like any other, without the time its keys take. */
async function addRow(): Promise<string> {
  const name = `shop-${++counter}.example`
  const at = world.clock.now()
  const row = await world.db
    .insertInto('domains')
    .values({
      id: `dom_${String(counter).padStart(26, '0')}`,
      account_id: world.account,
      name,
      return_path: `send.${name}`,
      rsa_selector: 'r',
      rsa_public_key: 'a',
      rsa_private_key: Buffer.alloc(0),
      ed25519_selector: 'e',
      ed25519_public_key: 'b',
      ed25519_private_key: Buffer.alloc(0),
      findings: '{}',
      pending_since: at,
      next_check_at: new Date(at.getTime() + minuteMs),
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return row.id
}

const vm = { hostname: 'vm', spfInclude: null }

async function createIn(options: Parameters<typeof createDomainWorld>[0]) {
  const unnamed = await createDomainWorld(options)
  onTestFinished(() => unnamed.end())
  const domain = await unnamed.domains.create(unnamed.db, live(unnamed.account), { name: 'example.com' })
  const verified = async () => {
    publish(unnamed.dns, domain)
    return unnamed.domains.verify(unnamed.db, live(unnamed.account), domain.id)
  }
  return { ...unnamed, domain, verified }
}

test('a service whose name has no dot says at once that its own records cannot be published, and never counts them', async () => {
  const { domain, verified } = await createIn({ sender: vm })
  expect(statusesOf(domain)).toMatchObject({ dkim_rsa: 'pending', spf: 'missing', return_path: 'missing' })
  const [spf, mx] = domain.records.filter(({ status }) => status === 'missing')
  expect(spf?.hint).toMatch(/cannot be published yet: "vm", .* has no dot.* set MAIL_HOSTNAME/)
  expect(mx?.hint).toBe(spf?.hint)
  const checked = await verified()
  expect(checked.status).toBe('pending')
  expect(statusesOf(checked)).toMatchObject({ dkim_rsa: 'verified', spf: 'missing', return_path: 'missing' })
})

test('a service whose name has no dot has them looked up once it has another', async () => {
  const sender = { ...vm }
  const { db, account, domains, domain, verified } = await createIn({ sender })
  await verified()
  sender.hostname = 'mail.example.com'
  const named = await domains.get(db, account, domain.id)
  expect(statusesOf(named)).toMatchObject({ dkim_rsa: 'verified', spf: 'pending', return_path: 'pending' })
  expect(statusesOf(await verified())).toMatchObject({ spf: 'mismatch', return_path: 'mismatch' })
})

test('a service whose name has no dot has the SPF record of another published', async () => {
  const { domain } = await createIn({ sender: { ...vm, spfInclude: 'spf.relay.example' } })
  expect(statusesOf(domain)).toMatchObject({ spf: 'pending', return_path: 'missing' })
})

test('a service whose name has no dot is not bothered where no email leaves', async () => {
  const { domain, verified } = await createIn({ sender: vm, isCaptured: true })
  expect(statusesOf(domain)).toMatchObject({ spf: 'pending', return_path: 'pending' })
  expect((await verified()).status).toBe('verified')
})
