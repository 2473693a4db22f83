import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { maxDomains, maxReturnPathLength } from '../../contract/domains.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { findSendingDomain } from '../../server/domains/service.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { openPrivateKey } from '../../server/secrets/private-keys.ts'
import { newId } from '../../server/shared/ids.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { live } from '../support/scope.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createDomainWorld, type DomainWorld, publish, statusesOf, withdraw } from '../support/worlds/domains.ts'

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

function newName(): string {
  return `shop-${++counter}.example`
}

/** A domain of our account whose events are seen already. */
async function add(name = newName()) {
  const domain = await world.domains.create(world.db, live(world.account), { name })
  await world.emitted()
  return domain
}

const allPending = {
  dkim_rsa: 'pending',
  dkim_ed25519: 'pending',
  spf: 'pending',
  return_path: 'pending',
  dmarc: 'pending',
}
const allVerified = {
  dkim_rsa: 'verified',
  dkim_ed25519: 'verified',
  spf: 'verified',
  return_path: 'verified',
  dmarc: 'verified',
}

test('adding a domain answers the records to publish, and tells of it', async () => {
  const { db, account, domains, emitted, clock } = world
  const domain = await domains.create(db, live(account), { name: 'Example.COM.' })
  const suffix = domain.id.slice(-10)
  expect(domain.records.map(({ ttl }) => ttl)).toEqual([3600, 3600, 3600, 3600, 3600])
  expect(
    domain.records.map(({ type, name, value, priority, required }) => [type, name, value, priority, required]),
  ).toEqual([
    [
      'TXT',
      `rsa-${suffix}._domainkey.example.com`,
      expect.stringMatching(/^v=DKIM1; k=rsa; p=[\w+/]{390,}=*$/),
      null,
      true,
    ],
    [
      'TXT',
      `ed25519-${suffix}._domainkey.example.com`,
      expect.stringMatching(/^v=DKIM1; k=ed25519; p=[\w+/]{43}=$/),
      null,
      false,
    ],
    ['TXT', 'send.example.com', 'v=spf1 a:mail.postern.example ~all', null, true],
    ['MX', 'send.example.com', 'mail.postern.example', 10, true],
    ['TXT', '_dmarc.example.com', 'v=DMARC1; p=none', null, false],
  ])
  expect(statusesOf(domain)).toEqual(allPending)
  expect(domain).toMatchObject({
    name: 'example.com',
    status: 'pending',
    lastCheckedAt: null,
    nextCheckAt: new Date(clock.now().getTime() + 60_000).toISOString(),
    verifiedAt: null,
  })
  expect(await emitted()).toEqual([
    ['domain.created', { domainId: domain.id, domain: 'example.com', status: 'pending' }],
  ])
  expect(await domains.get(db, account, domain.id)).toEqual(domain)
  expect(world.dns.queries).toEqual([])
})

test('adding a domain has the return path that is wanted, in its records and wherever bounces go', async () => {
  const { db, account, domains } = world
  const domain = await domains.create(db, live(account), { name: 'example.com', returnPath: 'Bounces.mail-1' })
  expect(domain.returnPath).toBe('bounces.mail-1')
  const ofReturnPath = domain.records.filter(({ purpose }) => purpose === 'spf' || purpose === 'return_path')
  expect(ofReturnPath.map(({ name }) => name)).toEqual(Array(2).fill('bounces.mail-1.example.com'))
  expect(await domains.get(db, account, domain.id)).toEqual(domain)
  expect((await add()).returnPath).toBe('send')
  publish(world.dns, domain)
  expect(await domains.verify(db, live(account), domain.id)).toMatchObject({ status: 'verified' })
})

test('adding a domain leaves room for the addresses at its return path, and refuses one that does not', async () => {
  const { db, account, domains } = world
  const name = `${'a.'.repeat(70)}example`
  const most = maxReturnPathLength - name.length - 1
  const domain = await domains.create(db, live(account), { name, returnPath: 'r'.repeat(most) })
  const tokens = createMailTokens(Buffer.alloc(32, 1))
  const emailId = newId('email', world.clock.now())
  const host = domain.records.find(({ purpose }) => purpose === 'return_path')?.name ?? ''
  expect(tokens.returnPath({ emailId, position: 49 }, host)).toHaveLength(254)
  const failure = domains.create(db, live(account), { name: `b.${name}`, returnPath: 'r'.repeat(most - 1) })
  await expect(failure).rejects.toMatchObject({
    code: 'rule_violation',
    details: [{ path: 'body.returnPath', message: 'must be at most 205 characters with the domain' }],
  })
})

test('adding a domain keeps private keys that belong to the published ones, sealed', async () => {
  const { id, records } = await add()
  const row = await world.db.selectFrom('domains').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const published = records.map(({ value }) => Buffer.from(value.split('p=')[1] ?? '', 'base64'))
  const rsa = createPublicKey({ key: published[0] ?? Buffer.alloc(0), format: 'der', type: 'spki' })
  expect(rsa.asymmetricKeyDetails?.modulusLength).toBe(2048)
  const x = (published[1] ?? Buffer.alloc(0)).toString('base64url')
  const ed25519 = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const text = Buffer.from('signed')
  const rsaKey = openPrivateKey(world.box, row.rsa_private_key)
  const ed25519Key = openPrivateKey(world.box, row.ed25519_private_key)
  expect(verify('sha256', text, rsa, sign('sha256', text, rsaKey))).toBe(true)
  expect(verify(null, text, ed25519, sign(null, text, ed25519Key))).toBe(true)
  for (const sealed of [row.rsa_private_key, row.ed25519_private_key]) {
    expect(() => createPrivateKey({ key: sealed, format: 'der', type: 'pkcs8' })).toThrow()
  }
})

test('adding a domain is refused for a name that is none', async () => {
  const { db, account, domains, emitted } = world
  const failure = await domains.create(db, live(account), { name: 'printer.local' }).catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'rule_violation', details: [{ path: 'body.name' }] })
  expect(await emitted()).toEqual([])
})

test('adding a domain is a conflict the second time, also in capitals, with other letters, and at the same moment', async () => {
  const { db, account, domains, emitted } = world
  await add('xn--bcher-kva.example')
  for (const name of ['xn--bcher-kva.example', 'BÜCHER.example', 'bücher.example.']) {
    expect(await refusal(domains.create(db, live(account), { name }))).toBe('conflict')
  }
  expect(await emitted()).toEqual([])
  const name = newName()
  const outcomes = await Promise.all([1, 2, 3].map(() => refusal(domains.create(db, live(account), { name }))))
  expect(outcomes.toSorted()).toEqual(['conflict', 'conflict', 'not refused'])
  expect(await emitted()).toHaveLength(1)
})

test('adding a domain is possible in another account, with keys of its own', async () => {
  const { db, stranger, domains } = world
  const ours = await add()
  const theirs = await domains.create(db, live(stranger), { name: ours.name })
  expect(theirs.records[0]?.name).not.toBe(ours.records[0]?.name)
  expect(theirs.records[0]?.value).not.toBe(ours.records[0]?.value)
})

test('adding a domain is a conflict beyond the most an account can have, also for two at the same moment', async () => {
  const { db, domains } = world
  const crowded = newId('account', world.clock.now())
  await db.insertInto('accounts').values({ id: crowded, name: 'Crowded', plan: 'scale' }).execute()
  await sql`
      INSERT INTO domains (id, account_id, name, return_path, rsa_selector, rsa_public_key, rsa_private_key,
        ed25519_selector, ed25519_public_key, ed25519_private_key)
      SELECT 'dom_' || n, ${crowded}, n || '.example', '', '', '', '', '', '', ''
      FROM generate_series(2, ${maxDomains}::int) AS n
    `.execute(db)
  const create = () => domains.create(db, live(crowded), { name: newName() })
  const { second } = await inTransaction(db, async (trx) => {
    await domains.create(trx, live(crowded), { name: newName() })
    const second = refusal(create())
    await Promise.race([untilSomebodyWaits(db), second])
    return { second }
  })
  expect(await second).toBe('conflict')
  await expect(create()).rejects.toThrow('has 1,000 domains, which is the most it can: delete one first')
  await db.deleteFrom('domains').where('id', '=', 'dom_2').execute()
  expect(await refusal(create())).toBe('not refused')
})

test('adding a domain leaves nothing when its transaction is rolled back', async () => {
  const { db, account, domains, emitted } = world
  const undone = inTransaction(db, async (trx) => {
    await domains.create(trx, live(account), { name: newName() })
    throw new Error('rolled back')
  })
  await expect(undone).rejects.toThrow('rolled back')
  expect(await emitted()).toEqual([])
  expect((await domains.list(db, account, { limit: 10 })).data).toEqual([])
})

test('domains are listed newest first, page by page', async () => {
  const { db, account, stranger, domains } = world
  const added = [await add(), await add(), await add()].reverse()
  const first = await domains.list(db, account, { limit: 2 })
  expect(first.data).toEqual(added.slice(0, 2))
  const second = await domains.list(db, account, { limit: 2, cursor: first.nextCursor ?? '' })
  expect(second).toEqual({ data: added.slice(2), nextCursor: null })
  expect(await domains.list(db, stranger, { limit: 2 })).toEqual({ data: [], nextCursor: null })
})

test("another account's domain is not there", async () => {
  const { db, stranger, domains, emitted } = world
  const { id } = await add()
  expect(await refusal(domains.get(db, stranger, id))).toBe('not_found')
  expect(await refusal(domains.verify(db, live(stranger), id))).toBe('not_found')
  expect(await refusal(domains.delete(db, live(stranger), id))).toBe('not_found')
  expect(await emitted()).toEqual([])
})

test('deleting a domain takes it away, and tells of it', async () => {
  const { db, account, domains, emitted } = world
  const { id, name } = await add()
  await domains.delete(db, live(account), id)
  expect(await emitted()).toEqual([['domain.deleted', { domainId: id, domain: name }]])
  expect(await refusal(domains.get(db, account, id))).toBe('not_found')
  expect(await refusal(domains.delete(db, live(account), id))).toBe('not_found')
  expect(await emitted()).toEqual([])
})

test('deleting a domain while it is checked ends the check without a trace', async () => {
  const { db, account, domains, dns, emitted } = world
  const domain = await add()
  publish(dns, domain)
  // Locked by us, as if the deletion had come first.
  const verified = await inTransaction(db, async (trx) => {
    await domains.delete(trx, live(account), domain.id)
    const checking = refusal(domains.verify(db, live(account), domain.id))
    await expect.poll(() => dns.queries.some(({ name }) => name === `_dmarc.${domain.name}`)).toBe(true)
    return { checking }
  })
  expect(await verified.checking).toBe('not_found')
  expect(await emitted()).toEqual([['domain.deleted', { domainId: domain.id, domain: domain.name }]])
})

test('verifying a domain tells what is missing, and changes nothing else', async () => {
  const { db, account, domains, clock, emitted } = world
  const before = await add()
  world.moveClock(1_000)
  const after = await domains.verify(db, live(account), before.id)
  expect(after).toMatchObject({
    status: 'pending',
    lastCheckedAt: clock.now().toISOString(),
    nextCheckAt: before.nextCheckAt,
  })
  expect(new Set(Object.values(statusesOf(after)))).toEqual(new Set(['missing']))
  expect(await emitted()).toEqual([])
  expect(await domains.get(db, account, before.id)).toEqual(after)
})

test('verifying a domain finds the records, and tells of it once', async () => {
  const { db, account, domains, dns, clock, emitted } = world
  const domain = await add()
  publish(dns, domain)
  const verified = await domains.verify(db, live(account), domain.id)
  expect(verified).toMatchObject({ status: 'verified', verifiedAt: clock.now().toISOString() })
  expect(statusesOf(verified)).toEqual(allVerified)
  await domains.verify(db, live(account), domain.id)
  expect(await emitted()).toEqual([['domain.verified', { domainId: domain.id, domain: domain.name }]])
})

test('verifying a domain needs what is required, and no more', async () => {
  const { db, account, domains, dns } = world
  const domain = await add()
  publish(dns, domain, ['spf', 'return_path', 'dkim_ed25519'])
  expect((await domains.verify(db, live(account), domain.id)).status).toBe('pending')
  publish(dns, domain, ['dkim_rsa'])
  const verified = await domains.verify(db, live(account), domain.id)
  expect(verified.status).toBe('verified')
  expect(statusesOf(verified)).toMatchObject({ dmarc: 'missing' })
})

test('verifying a domain many times at once tells of it once', async () => {
  const { db, account, domains, dns, emitted } = world
  const domain = await add()
  publish(dns, domain)
  const answers = await Promise.all(Array.from({ length: 6 }, () => domains.verify(db, live(account), domain.id)))
  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill('verified'))
  expect(await emitted()).toHaveLength(1)
})

test('verifying a domain shows a lost record, and leaves the domain verified', async () => {
  const { db, account, domains, dns, emitted } = world
  const domain = await add()
  publish(dns, domain)
  await domains.verify(db, live(account), domain.id)
  await emitted()
  withdraw(dns, domain)
  for (let i = 0; i < 5; i++) {
    const after = await domains.verify(db, live(account), domain.id)
    expect([after.status, statusesOf(after).dkim_rsa]).toEqual(['verified', 'missing'])
  }
  expect(await emitted()).toEqual([])
})

test('verifying a domain with name servers that fail leaves it verified', async () => {
  const { db, account, domains, dns } = world
  const domain = await add()
  publish(dns, domain)
  await domains.verify(db, live(account), domain.id)
  for (const { name } of domain.records) dns.set(name, 'failure')
  const after = await domains.verify(db, live(account), domain.id)
  expect(after.status).toBe('verified')
  expect(new Set(Object.values(statusesOf(after)))).toEqual(new Set(['server_failure']))
})

test('the domain an address is sent from is the closest that is verified, or the closest there is', async () => {
  const { db, account, stranger, dns, domains } = world
  const above = await add('covering.example')
  const below = await add('news.covering.example')
  const find = (name: string) => findSendingDomain(db, account, name)
  expect(await find('covering.example')).toEqual({ id: above.id, name: above.name, status: 'pending' })
  expect((await find('a.news.covering.example'))?.id).toBe(below.id)
  publish(dns, above)
  await domains.verify(db, live(account), above.id)
  expect(await find('a.news.covering.example')).toEqual({ id: above.id, name: above.name, status: 'verified' })
  publish(dns, below)
  await domains.verify(db, live(account), below.id)
  expect((await find('a.news.covering.example'))?.id).toBe(below.id)
  expect(await find('uncovering.example')).toBeNull()
  expect(await find('example')).toBeNull()
  expect(await findSendingDomain(db, stranger, 'covering.example')).toBeNull()
})

describe('while mail is captured', () => {
  let captured: DomainWorld

  beforeAll(async () => {
    captured = await createDomainWorld({ isCaptured: true })
  })
  afterAll(() => captured.end())

  test('a name below .test is verified at once while mail is captured, without any DNS', async () => {
    const { db, account, domains, dns, emitted } = captured
    const domain = await domains.create(db, live(account), { name: 'shop.test' })
    expect(domain).toMatchObject({ status: 'verified' })
    expect(statusesOf(domain)).toEqual(allVerified)
    expect(domain.records[0]?.hint).toContain('while mail is captured')
    const data = { domainId: domain.id, domain: 'shop.test' }
    expect(await emitted()).toEqual([
      ['domain.created', { ...data, status: 'pending' }],
      ['domain.verified', data],
    ])
    expect(await domains.verify(db, live(account), domain.id)).toEqual(domain)
    expect(dns.queries).toEqual([])
  })

  test('a name that is not below .test is looked up while mail is captured', async () => {
    const { db, account, domains, dns } = captured
    const domain = await domains.create(db, live(account), { name: 'shop.test.example' })
    expect((await domains.verify(db, live(account), domain.id)).status).toBe('pending')
    expect(dns.queries).not.toEqual([])
  })

  test('a name below .test is looked up where mail is not captured', async () => {
    const domain = await add('shop.test')
    expect((await world.domains.verify(world.db, live(world.account), domain.id)).status).toBe('pending')
  })
})
