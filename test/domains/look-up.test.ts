import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { DomainRecord } from '../../contract/domains.ts'
import type { RecordCheck } from '../../server/domains/check-result.ts'
import { openDns } from '../../server/domains/dns.ts'
import { lookUp } from '../../server/domains/look-up.ts'
import { recordsOf } from '../../server/domains/records.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { publish } from '../support/worlds/domains.ts'

/* The result of a check for each record, with a name server that answers real packets. */

const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const rsaKey = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')

const domain = {
  name: 'example.com',
  return_path: 'send.example.com',
  rsa_selector: 'rsa-1',
  rsa_public_key: rsaKey,
  ed25519_selector: 'ed25519-1',
  ed25519_public_key: Buffer.alloc(32, 5).toString('base64'),
}
const wanted = recordsOf(domain, { hostname: 'mail.postern.example', spfInclude: null })
const asShown = { records: wanted.map((record) => ({ ...record, status: 'pending' as const, hint: null })) }
const selector = 'rsa-1._domainkey.example.com'
const dkim = `v=DKIM1; k=rsa; p=${rsaKey}`
const spf = 'v=spf1 a:mail.postern.example ~all'

let dns: DnsServer

beforeAll(async () => {
  dns = await startDnsServer()
})
afterAll(() => dns.stop())
beforeEach(() => {
  for (const { name } of wanted) for (const one of [name, `${name}.example.com`]) dns.unset(one)
  publish(dns, asShown)
})

/** Looks up the records and returns the result for one of them. */
async function finding(purpose: DomainRecord['purpose'], budgetMs = 5_000): Promise<RecordCheck | undefined> {
  using questions = openDns({ servers: [dns.address], budgetMs })
  return (await lookUp(domain.name, wanted, questions))[purpose]
}

const verified = { status: 'verified', hint: null }

test('records that are published as shown are verified', async () => {
  using questions = openDns({ servers: [dns.address] })
  expect(await lookUp(domain.name, wanted, questions)).toEqual({
    dkim_rsa: verified,
    dkim_ed25519: verified,
    spf: verified,
    return_path: verified,
    dmarc: verified,
  })
})

test.each(wanted.map(({ purpose, name }) => [purpose, name] as const))(
  'a record that is not there is missing: %s',
  async (purpose, name) => {
    dns.unset(name)
    const { status, hint } = (await finding(purpose)) ?? {}
    expect(status).toBe('missing')
    expect(hint).toMatch(/^There is no .*Publish it as shown/)
    expect(hint).toContain(`"${name}"`)
  },
)

test.each(wanted.map(({ purpose, name }) => [purpose, name] as const))(
  'a record that is not there is missing beside others of its name: %s',
  async (purpose, name) => {
    dns.set(name, { TXT: ['something else'], A: ['192.0.2.1'] })
    expect((await finding(purpose))?.status).toBe('missing')
  },
)

test.each([
  ['dkim_rsa', selector, 'rsa-1._domainkey'],
  ['spf', 'send.example.com', 'send'],
  ['return_path', 'send.example.com', 'send'],
  ['dmarc', '_dmarc.example.com', '_dmarc'],
] as const)(
  'a record that is not there is looked for where the provider appends the domain: %s',
  async (purpose, name, short) => {
    const { records } = asShown
    dns.unset(name)
    publish(dns, { records: records.map((record) => ({ ...record, name: `${record.name}.example.com` })) })
    expect(await finding(purpose)).toEqual({
      status: 'missing',
      hint: `It stands at "${name}.example.com": the DNS provider appends the domain by itself. Enter "${short}" as its name.`,
    })
  },
)

test('name servers that fail are told apart from a missing record', async () => {
  dns.set('send.example.com', 'failure')
  for (const purpose of ['spf', 'return_path'] as const) {
    const { status, hint } = (await finding(purpose)) ?? {}
    expect(status).toBe('server_failure')
    expect(hint).toContain('(SERVFAIL)')
  }
  expect(await finding('dkim_rsa')).toEqual(verified)
})

test('name servers that say nothing are a time-out, within the budget', async () => {
  dns.set('send.example.com', 'silence')
  const { status, hint } = (await finding('return_path', 200)) ?? {}
  expect(status).toBe('timeout')
  expect(hint).toContain('did not answer in time')
})

test('name servers that say nothing of where else a record could be leave it missing', async () => {
  dns.unset(selector)
  dns.set(`${selector}.example.com`, 'silence')
  expect((await finding('dkim_rsa', 2_000))?.status).toBe('missing')
})

test('name servers are not waited for once the run has ended', async () => {
  dns.set('send.example.com', 'silence')
  const ending = new AbortController()
  using questions = openDns({ servers: [dns.address], budgetMs: 600_000, signal: ending.signal })
  const answers = [questions.mx('send.example.com'), questions.txt('send.example.com')]
  ending.abort()
  expect(await Promise.all(answers)).toEqual([{ kind: 'timeout' }, { kind: 'timeout' }])
  expect(await questions.mx('example.com')).toEqual({ kind: 'timeout' })
})

async function publishKey(...texts: (string | string[])[]): Promise<RecordCheck | undefined> {
  dns.set(selector, { TXT: texts })
  return finding('dkim_rsa')
}

test.each([
  ['in several strings', [dkim.slice(0, 100), dkim.slice(100, 200), dkim.slice(200)]],
  ['with its tags in another order and other spaces', `p=${rsaKey} ;k=rsa`],
  ['with spaces in the key', dkim.replace(/(.{100})/g, '$1 ')],
  ['with the hash and the service it is for', `${dkim}; h=sha1:sha256; s=email`],
  ['with more than this version knows', `${dkim}; x=y`],
])('DKIM is verified %s', async (_, text) => {
  expect(await publishKey(text)).toEqual(verified)
})

test('DKIM is verified behind a CNAME, which is told', async () => {
  dns.set(selector, { CNAME: 'keys.provider.test' })
  dns.set('keys.provider.test', { TXT: [dkim] })
  expect(await finding('dkim_rsa')).toEqual({
    status: 'verified',
    hint: 'Found by way of a CNAME, at "keys.provider.test". It must stay there.',
  })
})

test.each([
  ['does not exist', undefined],
  ['has no such record', { A: ['192.0.2.1'] }],
])('DKIM is dangling behind a CNAME to what %s', async (_, target) => {
  dns.set(selector, { CNAME: 'nowhere.test' })
  if (target === undefined) dns.unset('nowhere.test')
  else dns.set('nowhere.test', target)
  const { status, hint } = (await finding('dkim_rsa')) ?? {}
  expect(status).toBe('dangling')
  expect(hint).toContain(`"${selector}" is a CNAME for "nowhere.test"`)
})

test('DKIM tells where the key is another one, cut off, empty or quoted', async () => {
  const other = `v=DKIM1; k=rsa; p=${Buffer.alloc(294, 1).toString('base64')}`
  expect(await publishKey(other)).toMatchObject({
    status: 'mismatch',
    hint: expect.stringContaining('another one: found "v=DKIM1'),
  })
  const cutOff = 'The value is cut off after 255 characters, the length of one string.'
  expect(await publishKey(dkim.slice(0, 255))).toMatchObject({
    status: 'mismatch',
    hint: expect.stringContaining(cutOff),
  })
  const shorter = 'The value is cut off after 300 characters.'
  expect(await publishKey(dkim.slice(0, 300))).toMatchObject({
    status: 'mismatch',
    hint: expect.stringContaining(shorter),
  })
  const spread = 'The value is spread over several TXT records.'
  expect(await publishKey(dkim.slice(0, 255), dkim.slice(255))).toMatchObject({
    status: 'mismatch',
    hint: expect.stringContaining(spread),
  })
  expect(await publishKey('v=DKIM1; p=')).toMatchObject({
    status: 'mismatch',
    hint: expect.stringContaining('revoked'),
  })
  const quotes = 'The value holds quotation marks or backslashes.'
  expect(await publishKey(`"${dkim}"`)).toMatchObject({ status: 'mismatch', hint: expect.stringContaining(quotes) })
  expect(await publishKey(dkim.replaceAll(';', '\\;'))).toMatchObject({
    status: 'mismatch',
    hint: expect.stringContaining(quotes),
  })
})

test.each([
  ['of another kind', dkim.replace('k=rsa', 'k=ed25519')],
  ['of another version', dkim.replace('DKIM1', 'DKIM2')],
  ['for SHA-1 alone', `${dkim}; h=sha1`],
  ['for another service', `${dkim}; s=other`],
])('DKIM is a mismatch where the key is said to be %s', async (_, text) => {
  expect(await publishKey(text)).toMatchObject({
    status: 'mismatch',
    hint: expect.stringContaining('The key is right, but'),
  })
})

test('DKIM may be one record only', async () => {
  expect(await publishKey(dkim, 'v=DKIM1; p=abc')).toMatchObject({ status: 'multiple' })
})

test('DKIM is verified with a warning while it says that it is a test', async () => {
  const { status, hint } = (await publishKey(`${dkim}; t=s:y`)) ?? {}
  expect(status).toBe('verified')
  expect(hint).toContain('t=y')
})

test('DKIM shows nothing of a record that a terminal would obey, and not all of a long one', async () => {
  const { hint } = (await publishKey(`v=DKIM1; p=\u001b[2J${'x'.repeat(3_000)}`)) ?? {}
  expect(hint).toContain('\\u001b[2Jxxx')
  expect(hint?.length).toBeLessThan(400)
})

async function publishSpf(...texts: string[]): Promise<RecordCheck | undefined> {
  dns.set('send.example.com', { TXT: texts })
  return finding('spf')
}

test.each([
  ['beside others', ['v=spf1 include:other.test a:mail.postern.example -all']],
  ['in capitals and with a plus', ['V=SPF1 +A:Mail.Postern.Example ?all']],
  ['beside texts that are no SPF', ['google-site-verification=1', 'v=spf10 x', spf]],
  ['without an end', ['v=spf1 a:mail.postern.example']],
])('SPF is verified %s', async (_, texts) => {
  expect(await publishSpf(...texts)).toEqual(verified)
})

test.each([
  ['allows others only', 'v=spf1 include:other.test -all'],
  ['allows it behind the end, where nobody reads', 'v=spf1 -all a:mail.postern.example'],
  ['forbids it', 'v=spf1 -a:mail.postern.example +all'],
  ['forbids it before it allows it', 'v=spf1 ~a:mail.postern.example a:mail.postern.example -all'],
  ['allows a name that begins the same', 'v=spf1 a:mail.postern.example.test -all'],
  ['is empty', 'v=spf1'],
])('SPF is a mismatch where the record %s', async (_, text) => {
  expect(await publishSpf(text)).toEqual({
    status: 'mismatch',
    hint: `The SPF record does not allow this service: found "${text}". Add "a:mail.postern.example" to it, before the "all".`,
  })
})

test('SPF is a mismatch where it is quoted', async () => {
  expect(await publishSpf(`"${spf}"`)).toMatchObject({
    status: 'mismatch',
    hint: expect.stringContaining('without quotation marks'),
  })
})

test('SPF may be one record only', async () => {
  expect(await publishSpf(spf, 'v=spf1 -all')).toEqual({
    status: 'multiple',
    hint: 'There are 2 SPF records, which counts as an error (RFC 7208 §3.2). Keep one, and put the terms of all of them into it, before the "all".',
  })
})

test('SPF includes what the operator wants to be included', async () => {
  const included = recordsOf(domain, { hostname: 'mail.postern.example', spfInclude: 'spf.relay.example' })
  expect(included.find(({ purpose }) => purpose === 'spf')?.value).toBe('v=spf1 include:spf.relay.example ~all')
  dns.set('send.example.com', { TXT: ['v=spf1 include:spf.relay.example -all'] })
  using questions = openDns({ servers: [dns.address] })
  expect((await lookUp(domain.name, included, questions)).spf).toEqual(verified)
})

async function publishMx(...MX: { exchange: string; priority: number }[]): Promise<RecordCheck | undefined> {
  dns.set('send.example.com', { MX })
  return finding('return_path')
}

test('the MX of the return path may be in capitals, of any priority, and before others', async () => {
  const ours = { exchange: 'Mail.Postern.Example', priority: 20 }
  expect(await publishMx(ours, { exchange: 'backup.test', priority: 30 })).toEqual(verified)
})

test('the MX of the return path may be there twice', async () => {
  const ours = { exchange: 'mail.postern.example', priority: 10 }
  expect(await publishMx(ours, { ...ours, exchange: 'MAIL.postern.example' })).toEqual(verified)
  expect(await publishMx(ours, { ...ours, priority: 20 })).toEqual(verified)
})

test('the MX of the return path is a mismatch where another has the same priority, whichever stands first', async () => {
  const both = ['mail.postern.example', 'mx.other.test'].map((exchange) => ({ exchange, priority: 10 }))
  for (const records of [both, both.toReversed()]) {
    expect(await publishMx(...records)).toEqual({
      status: 'mismatch',
      hint: 'Some bounces go to "mx.other.test", which has the same priority 10, and would be lost. Remove it.',
    })
  }
})

test('the MX of the return path is a mismatch where it leads elsewhere, nowhere, or elsewhere first', async () => {
  expect(await publishMx({ exchange: 'mx.other.test', priority: 10 })).toMatchObject({
    status: 'mismatch',
    hint: expect.stringContaining('found "mx.other.test"'),
  })
  expect(await publishMx({ exchange: '', priority: 0 })).toMatchObject({ status: 'mismatch' })
  const ours = { exchange: 'mail.postern.example', priority: 10 }
  expect(await publishMx(ours, { exchange: 'mx.other.test', priority: 5 })).toMatchObject({
    status: 'mismatch',
    hint: expect.stringContaining('"mx.other.test" first'),
  })
})

test('DMARC may be any policy, but one only', async () => {
  dns.set('_dmarc.example.com', { TXT: ['v=DMARC1; p=reject; rua=mailto:d@example.com'] })
  expect(await finding('dmarc')).toEqual(verified)
  dns.set('_dmarc.example.com', { TXT: ['v=DMARC1; p=none', 'v=DMARC1; p=reject'] })
  expect(await finding('dmarc')).toMatchObject({ status: 'multiple' })
})

test('DMARC may be that of a domain above', async () => {
  const below = { ...domain, name: 'news.example.com', return_path: 'send.news.example.com' }
  const records = recordsOf(below, { hostname: 'mail.postern.example', spfInclude: null })
  using questions = openDns({ servers: [dns.address] })
  expect((await lookUp(below.name, records, questions)).dmarc).toEqual({
    status: 'verified',
    hint: 'Covered by "_dmarc.example.com".',
  })
})
