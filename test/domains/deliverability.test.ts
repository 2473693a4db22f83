import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DeliverabilityCheck } from '../../contract/deliverability.ts'
import type { Domain } from '../../contract/domains.ts'
import { live } from '../support/scope.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createDomainWorld, type DomainWorld, publish, sender } from '../support/worlds/domains.ts'

let world: DomainWorld
let counter = 0

beforeAll(async () => {
  world = await createDomainWorld()
})
afterAll(() => world.end())

/** A domain all of whose records are published, sent from a host with a right name. */
async function add(name = `shop-${++counter}.example`, its = world): Promise<Domain> {
  const domain = await its.domains.create(its.db, live(its.account), { name })
  publish(its.dns, domain)
  its.dns.set(sender.hostname, ['192.0.2.10', '2001:db8::10'])
  its.dns.set('10.2.0.192.in-addr.arpa', { PTR: [sender.hostname] })
  its.dns.set('0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa', { PTR: [sender.hostname] })
  return domain
}

async function checksOf({ id }: Domain, its = world): Promise<Record<string, DeliverabilityCheck>> {
  const { checks } = await its.domains.deliverability(its.db, live(its.account), id)
  return Object.fromEntries(checks.map((check) => [check.check, check]))
}

async function statusesOf(domain: Domain, its = world): Promise<Record<string, string>> {
  return Object.fromEntries(Object.entries(await checksOf(domain, its)).map(([name, { status }]) => [name, status]))
}

test('a domain with all records passes what it needs, and lacks only what protects mail to it', async () => {
  const domain = await add()
  world.dns.set(`_dmarc.${domain.name}`, { TXT: ['v=DMARC1; p=reject'] })
  expect(await statusesOf(domain)).toEqual({
    spf: 'pass',
    dkim: 'pass',
    return_path: 'pass',
    dmarc: 'pass',
    reverse_dns: 'pass',
    mta_sts: 'optional',
    tls_rpt: 'optional',
  })
})

test('a look changes nothing of the domain', async () => {
  const domain = await add()
  const before = await world.domains.get(world.db, world.account, domain.id)
  await checksOf(domain)
  expect(await world.domains.get(world.db, world.account, domain.id)).toEqual(before)
})

test.each<[name: string, records: string[], parent: string[], status: string]>([
  ['quarantine', ['v=DMARC1; p=quarantine'], [], 'pass'],
  ['spaces and capitals', ['v = DMARC1 ;  P = Reject'], [], 'pass'],
  ['no policy', ['v=DMARC1; rua=mailto:a@example.com'], [], 'warn'],
  ['policy none', ['v=DMARC1; p=none'], [], 'warn'],
  ['another version', ['v=DMARC10; p=reject'], [], 'fail'],
  ['two records', ['v=DMARC1; p=reject', 'v=DMARC1; p=none'], [], 'fail'],
  ['nothing anywhere', [], [], 'fail'],
  ['the policy of the parent', [], ['v=DMARC1; p=reject'], 'pass'],
  ["the parent's policy for subdomains", [], ['v=DMARC1; p=reject; sp=none'], 'warn'],
  ['an own policy before that of the parent', ['v=DMARC1; p=none'], ['v=DMARC1; p=reject'], 'warn'],
])('DMARC with %s', async (_, records, parent, status) => {
  const domain = await add(`mail.dmarc-${++counter}.example`)
  world.dns.set(`_dmarc.${domain.name}`, { TXT: records })
  world.dns.set(`_dmarc.dmarc-${counter}.example`, { TXT: parent })
  const found = (records.length > 0 ? records : parent).filter((record) => /^v ?= ?DMARC1 ?;/.test(record))
  expect((await checksOf(domain)).dmarc).toMatchObject({ status, found })
})

test('a domain with as many labels as there can be is looked for at six names at most', async () => {
  const domain = await add(`${'a.'.repeat(80)}deep-${++counter}.example`)
  world.dns.set(`_dmarc.${domain.name}`, { TXT: [] })
  const before = world.dns.queries.length
  await checksOf(domain)
  const asked = world.dns.queries.slice(before).filter(({ name }) => name.startsWith('_dmarc.'))
  expect(new Set(asked.map(({ name }) => name)).size).toBeLessThanOrEqual(6)
})

test('addresses without a name that leads back fail, with what to do', async () => {
  const domain = await add()
  world.dns.set('10.2.0.192.in-addr.arpa', { PTR: ['host-10.provider.example'] })
  world.dns.set('host-10.provider.example', ['192.0.2.99'])
  const { reverse_dns } = await checksOf(domain)
  expect(reverse_dns).toMatchObject({ status: 'fail', advice: expect.stringContaining('192.0.2.10') })
  expect(reverse_dns?.advice).not.toContain('2001:db8::10')
  expect(reverse_dns?.found).toContain('192.0.2.10: host-10.provider.example')
})

test('a host without an address fails', async () => {
  const domain = await add()
  world.dns.unset(sender.hostname)
  expect((await checksOf(domain)).reverse_dns).toMatchObject({
    status: 'fail',
    advice: expect.stringContaining('A record'),
  })
})

test('name servers that fail leave a check open, and the others as they are', async () => {
  const domain = await add()
  world.dns.set(`_dmarc.${domain.name}`, 'failure')
  world.dns.set(`_mta-sts.${domain.name}`, 'failure')
  world.dns.set('10.2.0.192.in-addr.arpa', 'failure')
  const checks = await checksOf(domain)
  expect(checks.dmarc?.summary).toContain('SERVFAIL')
  expect(Object.fromEntries(Object.entries(checks).map(([name, { status }]) => [name, status]))).toMatchObject({
    spf: 'pass',
    dmarc: 'unknown',
    mta_sts: 'unknown',
    reverse_dns: 'unknown',
    tls_rpt: 'optional',
  })
})

test('one MTA-STS record passes, two count as none, and others do not count', async () => {
  const domain = await add()
  const name = `_mta-sts.${domain.name}`
  const statusWith = async (...TXT: string[]) => {
    world.dns.set(name, { TXT })
    return (await statusesOf(domain)).mta_sts
  }
  expect(await statusWith('v=STSv1; id=1', 'a note')).toBe('pass')
  expect(await statusWith('v=STSv1; id=1', 'v=STSv1; id=2')).toBe('warn')
  expect(await statusWith('a note')).toBe('optional')
})

test('records that are gone fail, with what is wrong', async () => {
  const domain = await add()
  world.dns.set(`send.${domain.name}`, { TXT: ['v=spf1 -all'], MX: [] })
  const checks = await checksOf(domain)
  expect(checks).toMatchObject({ spf: { status: 'fail' }, return_path: { status: 'fail' }, dkim: { status: 'pass' } })
  expect(checks.spf?.summary).toContain('v=spf1 -all')
})

test('hostile values of the DNS are shortened, on one line, and few', async () => {
  const domain = await add()
  const hostile = `v=DMARC1; p=reject; \u202e\n${'x'.repeat(190)}`
  world.dns.set(`_dmarc.${domain.name}`, { TXT: Array.from({ length: 6 }, (_, at) => `${hostile}${at}`) })
  const found = (await checksOf(domain)).dmarc?.found ?? []
  expect(found).toHaveLength(5)
  for (const value of found) {
    expect(value.length).toBeLessThan(220)
    expect(value).not.toMatch(/[\n\u202e]/)
  }
})

test("another account's domain is not there", async () => {
  const domain = await add()
  expect(await refusal(world.domains.deliverability(world.db, live(world.stranger), domain.id))).toBe('not_found')
})

test('while email is captured, a name that ends in .test is not looked up', async () => {
  const captured = await createDomainWorld({ isCaptured: true })
  try {
    const domain = await captured.domains.create(captured.db, live(captured.account), { name: 'shop.test' })
    expect(new Set(Object.values(await statusesOf(domain, captured)))).toEqual(new Set(['skipped']))
    expect(captured.dns.queries).toEqual([])
    const real = await add('real.example', captured)
    expect(await statusesOf(real, captured)).toMatchObject({ dkim: 'pass', reverse_dns: 'skipped' })
  } finally {
    await captured.end()
  }
})
