import { describe, expect, test } from 'vitest'
import { resolveWith } from '../../../server/network/name-resolution.ts'
import { startDnsServer } from '../../support/dns-server.ts'
import { startReceiver } from '../../support/receiver.ts'
import { post, strictPolicy, testExchange } from './exchange-setup.ts'

/** Public for the guard, and of a block that nobody was given: nothing can be reached there. */
const nowhere = '3000::1'

const notAllowed = {
  kind: 'failed',
  stage: 'before-sending',
  reason: 'address-not-allowed',
  message:
    'The host of the URL leads to an address that is not public, and deliveries there are not allowed. Use a public address.',
}

test('the host of a URL is resolved once for each connection', async () => {
  await using dns = await startDnsServer()
  await using receiver = await startReceiver()
  dns.set('hook.test', ['127.0.0.1'])
  const exchange = testExchange({ resolve: dns.resolve })
  for (let i = 0; i < 3; i++) {
    expect(await post(exchange, `http://hook.test:${receiver.port}/`)).toMatchObject({ status: 200 })
  }
  expect(dns.queries.toSorted((a, b) => a.type.localeCompare(b.type))).toEqual([
    { name: 'hook.test', type: 'A' },
    { name: 'hook.test', type: 'AAAA' },
  ])
})

test('the host of a URL may be international', async () => {
  await using dns = await startDnsServer()
  await using receiver = await startReceiver()
  dns.set('xn--bcher-kva.test', ['127.0.0.1'])
  const exchange = testExchange({ resolve: dns.resolve })
  expect(await post(exchange, `http://bücher.test:${receiver.port}/`)).toMatchObject({ status: 200 })
  expect(receiver.requests[0]?.headers.host).toBe(`xn--bcher-kva.test:${receiver.port}`)
})

test('the host of a URL is tried at its next address when the first refuses', async () => {
  await using dns = await startDnsServer()
  await using receiver = await startReceiver()
  dns.set('hook.test', ['::1', '127.0.0.1'])
  const exchange = testExchange({ resolve: dns.resolve })
  expect(await post(exchange, `http://hook.test:${receiver.port}/`)).toMatchObject({ status: 200 })
})

test('the host of a URL is resolved as the system does where private networks are allowed', async () => {
  await using receiver = await startReceiver()
  expect(await post(testExchange(), `http://localhost:${receiver.port}/`)).toMatchObject({ status: 200 })
})

test.each([
  ['does not exist', undefined, 'The host name of the URL was not found. Check its spelling and its DNS records.'],
  ['has no address', [], 'The host name of the URL was not found. Check its spelling and its DNS records.'],
  ['has failing name servers', 'failure' as const, 'The name servers of the URL’s host did not answer. Check its DNS.'],
])('the host of a URL is not found when it %s', async (_name, dnsAnswer, message) => {
  await using dns = await startDnsServer()
  if (dnsAnswer !== undefined) dns.set('hook.test', dnsAnswer)
  const outcome = await post(testExchange({ resolve: dns.resolve }), 'http://hook.test/')
  expect(outcome).toMatchObject({ kind: 'failed', stage: 'before-sending', reason: 'name-not-found', message })
})

test('a name without A whose AAAA cannot be had is not said to be missing', async () => {
  const missing = Object.assign(new Error('no A'), { code: 'ENODATA' })
  const failing = Object.assign(new Error('no answer'), { code: 'ESERVFAIL' })
  const resolve = resolveWith({ resolve4: () => Promise.reject(missing), resolve6: () => Promise.reject(failing) })
  expect(await post(testExchange({ resolve }), 'http://hook.test/')).toMatchObject({
    message: 'The name servers of the URL’s host did not answer. Check its DNS.',
  })
})

describe('where only public addresses are allowed', () => {
  test.each([
    ['a private address', ['127.0.0.1']],
    ['a private IPv6 address', ['::1']],
    ['a mapped private address', ['::ffff:127.0.0.1']],
    ['a public and a private address', [nowhere, '127.0.0.1']],
    ['a private and a public address', ['::1', nowhere]],
  ])('a name that leads to %s is refused before anything is sent', async (_name, addresses) => {
    await using dns = await startDnsServer()
    await using receiver = await startReceiver()
    dns.set('hook.test', addresses)
    const exchange = testExchange({ policy: strictPolicy, resolve: dns.resolve })
    expect(await post(exchange, `http://hook.test:${receiver.port}/`)).toMatchObject(notAllowed)
    expect(receiver.connections).toBe(0)
  })

  test('a name that changes its answer gains nothing, neither between check and connection nor between attempts', async () => {
    await using dns = await startDnsServer()
    await using receiver = await startReceiver()
    dns.set('rebind.test', [nowhere], ['127.0.0.1'])
    const exchange = testExchange({ policy: strictPolicy, resolve: dns.resolve, timeoutMs: 1_000 })
    const url = `http://rebind.test:${receiver.port}/`

    // Judged by the first answer and connected to it, wherever that leads; nobody is asked again.
    const first = await post(exchange, url)
    expect(['unreachable', 'timed-out']).toContain(first.kind === 'failed' ? first.reason : 'answered')
    expect(dns.queries.map(({ type }) => type).toSorted()).toEqual(['A', 'AAAA'])

    expect(await post(exchange, url)).toMatchObject(notAllowed)
    expect(dns.queries).toHaveLength(4)
    expect(receiver.connections).toBe(0)
  })

  test.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.0.0.1.',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    'localhost',
    'api.localhost.',
    'user@127.0.0.1',
  ])('the literal %s is refused, which no lookup would see', async (host) => {
    await using receiver = await startReceiver()
    const exchange = testExchange({ policy: strictPolicy })
    expect(await post(exchange, `http://${host}:${receiver.port}/`)).toMatchObject(notAllowed)
    expect(receiver.connections).toBe(0)
  })
})

test('http:// is refused where only https:// is allowed', async () => {
  await using receiver = await startReceiver()
  const exchange = testExchange({ policy: { allowHttp: false, allowPrivateNetworks: true } })
  expect(await post(exchange, receiver.url)).toMatchObject({
    kind: 'failed',
    stage: 'before-sending',
    reason: 'address-not-allowed',
    message: 'The URL begins with http://, and only https:// is allowed. Change it to https://.',
  })
  expect(receiver.connections).toBe(0)
})
