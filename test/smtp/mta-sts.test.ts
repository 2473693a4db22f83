import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { allowsHost, parsePolicy, policyIdOf } from '../../server/smtp/mta-sts-policy.ts'
import { type CertificateName, certificate } from '../support/certificates.ts'
import { createTestTime } from '../support/clock.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { startScriptedSmtp } from '../support/scripted-smtp.ts'
import type { SmtpStage } from '../support/scripted-smtp-session.ts'
import { directTo } from './direct-setup.ts'
import { conversation, sendOnce } from './smtp-setup.ts'

const toReceiver = conversation({ destination: 'receiver.test' })
const never = new AbortController().signal
const enforced = 'version: STSv1\r\nmode: enforce\r\nmx: mx.receiver.test\r\nmax_age: 3600\r\n'

type PolicyServer = {
  port: number
  /** Requests it got. */
  readonly asked: { path: string | undefined; host: string | undefined }[]
  answer: { status?: number; type?: string; body: string; location?: string }
}

async function startPolicyServer(body: string, name: CertificateName = 'valid'): Promise<PolicyServer> {
  const asked: PolicyServer['asked'] = []
  const server = createServer(certificate(name), (request, response) => {
    asked.push({ path: request.url, host: request.headers.host })
    const { status = 200, type = 'text/plain', location, body: text } = policies.answer
    response.writeHead(status, { 'content-type': type, ...(location !== undefined && { location }) }).end(text)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const policies: PolicyServer = { port: (server.address() as AddressInfo).port, asked, answer: { body } }
  return policies
}

/** A domain that announces a policy, with one mail server. */
async function startReceiver(id = '1'): Promise<DnsServer> {
  const dns = await startDnsServer()
  onTestFinished(() => dns.stop())
  dns.set('_mta-sts.receiver.test', { TXT: [`v=STSv1; id=${id};`] })
  dns.set('mta-sts.receiver.test', ['127.0.0.1'])
  dns.set('receiver.test', { MX: [{ exchange: 'mx.receiver.test', priority: 10 }] })
  dns.set('mx.receiver.test', ['127.0.0.1'])
  return dns
}

test('a domain that enforces its policy is sent to over TLS with a valid certificate', async () => {
  await using server = await startScriptedSmtp({ tls: 'valid' })
  const dns = await startReceiver()
  const policies = await startPolicyServer(enforced)

  const outcomes = await sendOnce(directTo({ dns, port: server.port, https: policies.port }), toReceiver)

  expect(outcomes).toMatchObject([{ kind: 'accepted', host: 'mx.receiver.test' }])
  expect(server.messages).toMatchObject([{ isSecure: true }])
  expect(policies.asked).toEqual([{ path: '/.well-known/mta-sts.txt', host: 'mta-sts.receiver.test' }])
})

test('a domain that enforces its policy is asked for it at the next address where one cannot be reached', async () => {
  await using server = await startScriptedSmtp()
  const dns = await startReceiver()
  dns.set('mta-sts.receiver.test', ['127.0.0.1', '::1'])
  const policies = await startPolicyServer(enforced)

  expect(await sendOnce(directTo({ dns, port: server.port, https: policies.port }), toReceiver)).toMatchObject([
    { kind: 'deferred', reason: expect.stringContaining('offers no secure connection') },
  ])
  expect(policies.asked).toEqual([{ path: '/.well-known/mta-sts.txt', host: 'mta-sts.receiver.test' }])
  expect(server.messages).toEqual([])
})

test.each<[CertificateName | 'broken' | 'none', string]>([
  ['expired', 'its certificate has expired'],
  ['other-name', 'its certificate is for another name'],
  ['self-signed', 'its certificate is self-signed'],
  ['broken', 'it does not speak TLS'],
  ['none', 'offers no secure connection'],
])('a domain that enforces its policy is sent nothing over TLS that is %s', async (tls, reason) => {
  await using server = await startScriptedSmtp(tls === 'none' ? {} : { tls })
  const dns = await startReceiver()
  const policies = await startPolicyServer(enforced)

  expect(await sendOnce(directTo({ dns, port: server.port, https: policies.port }), toReceiver)).toMatchObject([
    { kind: 'deferred', reason: expect.stringContaining(reason) },
  ])
  expect(server.messages).toEqual([])
})

test.each<[SmtpStage, string, 'drop'?]>([
  ['connect', '554 5.7.1 Go away'],
  ['ehlo', '550 5.7.1 Go away'],
  ['starttls', '554 5.7.0 No'],
  ['starttls', '421 4.7.0 Not now', 'drop'],
])(
  'a domain that enforces its policy keeps the message when it is refused at %s, since anybody may have said that',
  async (stage, reply, next) => {
    await using server = await startScriptedSmtp({ tls: 'valid' })
    server.at(stage, next === undefined ? reply : { reply, next })
    server.at('helo', reply)
    const dns = await startReceiver()
    const policies = await startPolicyServer(enforced)

    expect(await sendOnce(directTo({ dns, port: server.port, https: policies.port }), toReceiver)).toMatchObject([
      { kind: 'deferred', reply, host: 'mx.receiver.test' },
    ])
    expect(server.connections).toBe(1)
    expect(server.messages).toEqual([])
  },
)

test('a domain that enforces its policy is believed when it refuses for good over TLS', async () => {
  await using server = await startScriptedSmtp({ tls: 'valid' })
  const refuse = ({ isSecure }: { isSecure: boolean }) => (isSecure ? '550 5.7.1 Go away' : undefined)
  server.at('ehlo', refuse)
  server.at('helo', refuse)
  const dns = await startReceiver()
  const policies = await startPolicyServer(enforced)

  expect(await sendOnce(directTo({ dns, port: server.port, https: policies.port }), toReceiver)).toMatchObject([
    { kind: 'bounced', bounceType: 'soft', reply: '550 5.7.1 Go away' },
  ])
})

test('a domain that enforces its policy is sent nothing over hosts that it does not name', async () => {
  await using server = await startScriptedSmtp({ tls: 'valid' })
  const dns = await startReceiver()
  dns.set('evil.test', ['127.0.0.1'])
  dns.set('receiver.test', { MX: [{ exchange: 'evil.test', priority: 1 }] })
  const policies = await startPolicyServer(enforced)

  expect(await sendOnce(directTo({ dns, port: server.port, https: policies.port }), toReceiver)).toMatchObject([
    { kind: 'deferred', reason: 'The MTA-STS policy of the domain allows none of its mail servers.' },
  ])
  expect(server.connections).toBe(0)
})

test('a domain that enforces its policy is sent nothing over a connection that was opened for another domain without looking', async () => {
  await using server = await startScriptedSmtp({ tls: 'expired' })
  const dns = await startReceiver()
  dns.set('lax.test', { MX: [{ exchange: 'mx.receiver.test', priority: 10 }] })
  const policies = await startPolicyServer(enforced)
  const transport = directTo({ dns, port: server.port, https: policies.port })

  expect(await transport.send(conversation({ destination: 'lax.test' }), never)).toMatchObject([{ kind: 'accepted' }])
  expect(await transport.send(toReceiver, never)).toMatchObject([{ kind: 'deferred' }])
  await transport.close()
})

describe('a policy', () => {
  test.each(['testing', 'none'])('a policy in the mode %s hinders nothing', async (mode) => {
    await using server = await startScriptedSmtp()
    const dns = await startReceiver()
    const policies = await startPolicyServer(enforced.replace('enforce', mode))

    expect(await sendOnce(directTo({ dns, port: server.port, https: policies.port }), toReceiver)).toMatchObject([
      { kind: 'accepted' },
    ])
  })

  test.each<[string, Partial<PolicyServer['answer']>, CertificateName]>([
    ['that is not there', { status: 404 }, 'valid'],
    ['that has moved', { status: 301, location: 'https://elsewhere.test/' }, 'valid'],
    ['that is no text', { type: 'text/html' }, 'valid'],
    ['that is too large', { body: `${enforced}${'x: y\r\n'.repeat(20_000)}` }, 'valid'],
    ['that cannot be read', { body: 'mode: enforce' }, 'valid'],
    ['that is written to be read for long', { body: `x:${' '.repeat(60_000)}x\rx` }, 'valid'],
    ['from a server with an expired certificate', {}, 'expired'],
    ['from a server with a certificate for another name', {}, 'other-name'],
  ])('%s is none', async (_name, answer, name) => {
    await using server = await startScriptedSmtp()
    const dns = await startReceiver()
    const policies = await startPolicyServer(enforced, name)
    policies.answer = { ...policies.answer, ...answer }

    expect(await sendOnce(directTo({ dns, port: server.port, https: policies.port }), toReceiver)).toMatchObject([
      { kind: 'accepted' },
    ])
    expect(server.messages).toMatchObject([{ isSecure: false }])
  })

  test('a policy is remembered for as long as it says, also while it cannot be had', async () => {
    await using server = await startScriptedSmtp()
    const time = createTestTime()
    const dns = await startReceiver()
    const policies = await startPolicyServer(enforced)
    const transport = directTo({ dns, port: server.port, https: policies.port, clock: time.clock })
    const kind = async () => (await transport.send(toReceiver, never))[0]?.kind

    expect(await kind()).toBe('deferred')
    policies.answer = { status: 500, body: '' }
    dns.set('_mta-sts.receiver.test', { TXT: ['v=STSv1; id=2;'] })
    await time.advance(3_000_000)
    expect(await kind()).toBe('deferred')
    dns.unset('_mta-sts.receiver.test')
    await time.advance(599_000)
    expect(await kind()).toBe('deferred')
    await time.advance(302_000)
    expect(await kind()).toBe('accepted')
    await transport.close()
  })

  test('a policy is fetched again when it is announced with another id, not before', async () => {
    await using server = await startScriptedSmtp()
    const time = createTestTime()
    const dns = await startReceiver()
    const policies = await startPolicyServer(enforced)
    const transport = directTo({ dns, port: server.port, https: policies.port, clock: time.clock })
    await transport.send(toReceiver, never)
    await time.advance(301_000)
    await transport.send(toReceiver, never)
    expect(policies.asked).toHaveLength(1)

    policies.answer = { body: enforced.replace('enforce', 'none') }
    dns.set('_mta-sts.receiver.test', { TXT: ['v=STSv1; id=2;'] })
    await time.advance(301_000)
    expect(await transport.send(toReceiver, never)).toMatchObject([{ kind: 'accepted' }])
    expect(policies.asked).toHaveLength(2)
    await transport.close()
  })
})

const dayMs = 86_400_000
const long = enforced.replace('3600', String((10 * dayMs) / 1000))

async function start() {
  const server = await startScriptedSmtp()
  onTestFinished(() => server.stop())
  const time = createTestTime()
  const dns = await startReceiver()
  const policies = await startPolicyServer(long)
  const transport = directTo({ dns, port: server.port, https: policies.port, clock: time.clock })
  onTestFinished(() => transport.close())
  const kindAfter = async (ms: number) => {
    await time.advance(ms)
    return (await transport.send(toReceiver, never))[0]?.kind
  }
  return { dns, policies, kindAfter }
}

test('a policy that is announced with the same id is fetched again once a day, so that it does not expire', async () => {
  const { dns, policies, kindAfter } = await start()
  expect(await kindAfter(0)).toBe('deferred')
  expect(await kindAfter(dayMs - 1)).toBe('deferred')
  expect(policies.asked).toHaveLength(1)
  expect(await kindAfter(300_000)).toBe('deferred')
  expect(policies.asked).toHaveLength(2)

  // Whoever hides the record gains nothing.
  dns.unset('_mta-sts.receiver.test')
  expect(await kindAfter(9.5 * dayMs)).toBe('deferred')
  expect(await kindAfter(9.5 * dayMs)).toBe('deferred')
  expect(policies.asked).toHaveLength(4)

  policies.answer = { body: long.replace('enforce', 'none') }
  expect(await kindAfter(dayMs)).toBe('accepted')
})

test('a policy that is announced with the same id is kept until it expires when it cannot be fetched', async () => {
  const { policies, kindAfter } = await start()
  expect(await kindAfter(0)).toBe('deferred')
  policies.answer = { status: 500, body: '' }
  expect(await kindAfter(dayMs)).toBe('deferred')
  expect(await kindAfter(300_000)).toBe('deferred')
  expect(policies.asked).toHaveLength(2)
  expect(await kindAfter(8.9 * dayMs)).toBe('deferred')
  expect(policies.asked).toHaveLength(3)
  expect(await kindAfter(0.2 * dayMs)).toBe('accepted')
})

test.each([
  [[['v=STSv1; id=20160831085700Z;']], '20160831085700Z'],
  [[['v=STSv1;id=a']], 'a'],
  [[['v=STSv1; ', 'id=a1;']], 'a1'],
  [[['v=spf1 -all'], ['v=STSv1; id=1; x=y']], '1'],
  [[['v=STSv1; id=1;'], ['v=STSv1; id=2;']], null],
  [[['v=STSv1;']], null],
  [[['v=STSv1; id=a-b;']], null],
  [[['v=STSv10; id=1;']], null],
  [[], null],
])('%j announces the policy %s', (records, id) => {
  expect(policyIdOf(records)).toBe(id)
})

test('the file of a policy is read', () => {
  const text = 'version: STSv1\nmode: testing\nmx: mail.Example.com\nmx: *.example.net\nmax_age: 604800\nx: y\n'
  expect(parsePolicy(text)).toEqual({
    mode: 'testing',
    maxAgeSeconds: 604_800,
    mx: ['mail.example.com', '*.example.net'],
  })
  expect(parsePolicy('version: STSv1\r\nmode: none\r\nmax_age: 9999999999\r\n')).toEqual({
    mode: 'none',
    maxAgeSeconds: 31_557_600,
    mx: [],
  })
})

test('the file of a policy is read whatever ends its lines, and whatever stands around its values', () => {
  for (const end of ['\r\n', '\r', '\n']) {
    const text = ['version: STSv1', 'mode \t:\t enforce  ', 'mx:a.test', 'MX: b.test', 'max_age : 1', ''].join(end)
    expect(parsePolicy(text)).toEqual({ mode: 'enforce', maxAgeSeconds: 1, mx: ['a.test'] })
  }
})

// Read at more than a step for each character, these take minutes.
test.each([
  ['in a line', `x:${' '.repeat(60_000)}x`],
  ['and then half the end of a line', `x:${' '.repeat(60_000)}x\rx`],
  ['before a colon', `x${' '.repeat(60_000)}x:`],
  ['in front of a line', `${' '.repeat(60_000)}x`],
])('the file of a policy is no trouble with many spaces %s', (_name, text) => {
  expect(parsePolicy(text)).toBeNull()
})

test.each([
  '',
  'version: STSv2\nmode: none\nmax_age: 1',
  'version: STSv1\nmode: strict\nmx: a\nmax_age: 1',
  'version: STSv1\nmode: enforce\nmax_age: 1',
  'version: STSv1\nmode: none\nmax_age: -1',
  'version: STSv1\nmode: none\nmax_age: soon',
  'version: STSv1\nmode: none',
])('%j is no policy', (text) => {
  expect(parsePolicy(text)).toBeNull()
})

test.each([
  ['mx.receiver.test', true],
  ['a.wild.test', true],
  ['wild.test', false],
  ['a.b.wild.test', false],
  ['other.test', false],
])('a policy for one host and all of a domain allows %s: %s', (host, expected) => {
  const policy = { mode: 'enforce', maxAgeSeconds: 1, mx: ['mx.receiver.test', '*.wild.test'] } as const
  expect(allowsHost(policy, host)).toBe(expected)
})
