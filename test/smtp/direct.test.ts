import { describe, expect, test } from 'vitest'
import { inTurn } from '../../server/smtp/mx.ts'
import { createTestTime } from '../support/clock.ts'
import { startDnsServer } from '../support/dns-server.ts'
import { startScriptedSmtp } from '../support/scripted-smtp.ts'
import { directTo } from './direct-setup.ts'
import { conversation, sendOnce } from './smtp-setup.ts'

const toReceiver = conversation({ destination: 'receiver.test' })
const never = new AbortController().signal
const mx = (exchange: string, priority = 10) => ({ exchange, priority })

test('a message goes to the mail server of the domain, which is final', async () => {
  await using dns = await startDnsServer()
  await using server = await startScriptedSmtp({ tls: 'self-signed' })
  dns.set('receiver.test', { MX: [mx('MX.Receiver.test')] })
  dns.set('mx.receiver.test', ['127.0.0.1'])

  expect(await sendOnce(directTo({ dns, port: server.port }), toReceiver)).toEqual([
    { kind: 'accepted', final: true, reply: '250 2.0.0 Taken', host: 'mx.receiver.test' },
  ])
  expect(server.messages).toMatchObject([{ isSecure: true, recipients: [{ address: 'b@receiver.test' }] }])
})

test('a message goes to the domain itself, where it has addresses and no MX', async () => {
  await using dns = await startDnsServer()
  await using server = await startScriptedSmtp()
  dns.set('receiver.test', ['127.0.0.1'])

  expect(await sendOnce(directTo({ dns, port: server.port }), toReceiver)).toMatchObject([
    { kind: 'accepted', host: 'receiver.test' },
  ])
})

test('a message goes to the hosts in the order of their preference, the next where one cannot be talked to', async () => {
  await using dns = await startDnsServer()
  await using busy = await startScriptedSmtp()
  await using second = await startScriptedSmtp({ host: '127.0.0.2', port: busy.port })
  await using last = await startScriptedSmtp({ host: '127.0.0.3', port: busy.port })
  busy.at('connect', '421 4.3.2 Not now')
  dns.set('receiver.test', {
    MX: [mx('last.test', 40), mx('second.test', 20), mx('gone.test', 5), mx('refusing.test', 1), mx('busy.test', 10)],
  })
  dns.set('refusing.test', ['127.0.0.9'])
  dns.set('busy.test', ['127.0.0.1'])
  dns.set('second.test', ['127.0.0.2'])
  dns.set('last.test', ['127.0.0.3'])

  expect(await sendOnce(directTo({ dns, port: busy.port }), toReceiver)).toMatchObject([
    { kind: 'accepted', host: 'second.test' },
  ])
  expect([busy, second, last].map(({ connections }) => connections)).toEqual([1, 1, 0])
})

test('a message goes to the next address of a host, IPv6 before IPv4', async () => {
  await using dns = await startDnsServer()
  await using server = await startScriptedSmtp()
  await using six = await startScriptedSmtp({ host: '::1', port: server.port })
  dns.set('receiver.test', { MX: [mx('mx.test')] })
  dns.set('mx.test', ['127.0.0.1', '::1'])
  const transport = directTo({ dns, port: server.port })
  six.at('connect', ({ count }) => (count === 0 ? undefined : '421 4.3.2 Not now'))
  six.at('message', { reply: '250 2.0.0 Taken', next: 'drop' })
  await transport.send(toReceiver, never)
  await transport.send(toReceiver, never)
  await transport.close()

  expect([six.messages.length, server.messages.length]).toEqual([1, 1])
})

test('a message goes to the hosts that have a name, where the MX that takes no mail stands beside them', async () => {
  await using dns = await startDnsServer()
  await using server = await startScriptedSmtp()
  dns.set('receiver.test', { MX: [mx('', 0), mx('mx.test')] })
  dns.set('mx.test', ['127.0.0.1'])

  expect(await sendOnce(directTo({ dns, port: server.port }), toReceiver)).toMatchObject([
    { kind: 'accepted', host: 'mx.test' },
  ])
})

test('a message goes over a connection that is kept, without asking the DNS again for five minutes', async () => {
  await using dns = await startDnsServer()
  await using server = await startScriptedSmtp()
  const time = createTestTime()
  dns.set('receiver.test', { MX: [mx('mx.test')] })
  dns.set('mx.test', ['127.0.0.1'])
  const transport = directTo({ dns, port: server.port, clock: time.clock })
  const asked = () => dns.queries.filter(({ type }) => type === 'MX').length
  await transport.send(toReceiver, never)
  await transport.send(toReceiver, never)
  expect([server.connections, asked()]).toEqual([1, 1])
  await time.advance(300_000)
  await transport.send(toReceiver, never)
  expect([server.connections, asked()]).toEqual([1, 2])
  await transport.close()
})

test('a message goes for two domains of one mail server over the same connection', async () => {
  await using dns = await startDnsServer()
  await using server = await startScriptedSmtp()
  for (const domain of ['receiver.test', 'other.test']) dns.set(domain, { MX: [mx('mx.test')] })
  dns.set('mx.test', ['127.0.0.1'])
  const transport = directTo({ dns, port: server.port })
  expect(transport.destinationOf('receiver.test')).not.toBe(transport.destinationOf('other.test'))
  await transport.send(toReceiver, never)
  await transport.send(conversation({ destination: 'other.test', to: ['c@other.test'] }), never)
  await transport.close()

  expect(server.messages.map(({ connection }) => connection)).toEqual([0, 0])
})

describe('a domain without a mail server', () => {
  test.each([
    ['that does not exist', undefined, 'hard', 'The domain does not exist (5.1.2).'],
    ['that has no address either', { TXT: ['hello'] }, 'hard', 'The domain has no mail server (5.1.2).'],
    ['that takes no mail (RFC 7505)', { MX: [mx('.', 0)] }, 'hard', 'The domain takes no mail (5.1.10).'],
    ['whose MX is an address', { MX: [mx('192.0.2.1')] }, 'soft', 'The MX records of the domain name no host (5.4.4).'],
    [
      'whose MX does not exist',
      { MX: [mx('gone.test')] },
      'soft',
      'The mail server of the domain has no address (5.4.4).',
    ],
  ])('%s bounces', async (_name, records, bounceType, reason) => {
    await using dns = await startDnsServer()
    if (records !== undefined) dns.set('receiver.test', records)

    expect(await sendOnce(directTo({ dns, port: 1 }), toReceiver)).toMatchObject([
      { kind: 'bounced', bounceType, reason, reply: null },
    ])
  })

  test.each([
    ['failure', 'answered with an error (SERVFAIL)'],
    ['silence', 'did not answer'],
  ] as const)('a domain whose name servers answer with %s is tried later, and asked again', async (answer, said) => {
    await using dns = await startDnsServer()
    await using server = await startScriptedSmtp()
    dns.set('receiver.test', answer, { MX: [mx('mx.test')] })
    dns.set('mx.test', ['127.0.0.1'])
    const transport = directTo({ dns, port: server.port, dnsTimeoutMs: 1_000 })

    expect(await transport.send(toReceiver, never)).toMatchObject([
      {
        kind: 'deferred',
        reason: `The name servers of the domain ${said}.`,
        unknown: false,
        congested: false,
      },
    ])
    expect(await transport.send(toReceiver, never)).toMatchObject([{ kind: 'accepted' }])
    await transport.close()
  })

  // It may have MX records that name others. Source: RFC 5321 §5.1.
  test.each([
    ['failure', 'answered with an error (SERVFAIL)'],
    ['silence', 'did not answer'],
  ] as const)('a domain that has an address is tried later while its MX is answered with %s', async (answer, said) => {
    await using dns = await startDnsServer()
    await using server = await startScriptedSmtp()
    dns.set('receiver.test', { A: ['127.0.0.1'], failing: { MX: answer } })

    const transport = directTo({ dns, port: server.port, dnsTimeoutMs: 1_000 })
    expect(await sendOnce(transport, toReceiver)).toMatchObject([
      { kind: 'deferred', reason: `The name servers of the domain ${said}.` },
    ])
    expect(server.connections).toBe(0)
  })

  test('a domain whose mail server’s name servers fail is tried later', async () => {
    await using dns = await startDnsServer()
    dns.set('receiver.test', { MX: [mx('mx.test'), mx('gone.test', 20)] })
    dns.set('mx.test', 'failure')

    expect(await sendOnce(directTo({ dns, port: 1 }), toReceiver)).toMatchObject([
      {
        kind: 'deferred',
        reason: 'The name servers of the mail server answered with an error (SERVFAIL).',
        host: 'mx.test',
      },
    ])
  })
})

describe('addresses that are not public', () => {
  test.each(['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', '::ffff:127.0.0.1'])(
    '%s is not connected to',
    async (address) => {
      await using dns = await startDnsServer()
      await using server = await startScriptedSmtp()
      dns.set('receiver.test', { MX: [mx('mx.test')] })
      dns.set('mx.test', [address])

      expect(
        await sendOnce(directTo({ dns, port: server.port, allowPrivateNetworks: false }), toReceiver),
      ).toMatchObject([
        {
          kind: 'bounced',
          bounceType: 'soft',
          reason: 'The mail server of the domain has an address that is not public (5.4.4).',
        },
      ])
      expect(server.connections).toBe(0)
    },
  )
})

test.each(['connect', 'ehlo'] as const)(
  'a mail server that sends the service away for good at %s bounces, and the address is not blamed',
  async (stage) => {
    await using dns = await startDnsServer()
    await using server = await startScriptedSmtp()
    server.at(stage, '550 5.1.1 We take no mail from you')
    server.at('helo', '550 5.1.1 We take no mail from you')
    dns.set('receiver.test', ['127.0.0.1'])

    expect(await sendOnce(directTo({ dns, port: server.port }), toReceiver)).toMatchObject([
      { kind: 'bounced', bounceType: 'soft', reply: '550 5.1.1 We take no mail from you' },
    ])
  },
)

test('a mail server that sends the service away keeps the message waiting while another is only away', async () => {
  await using dns = await startDnsServer()
  await using server = await startScriptedSmtp()
  server.at('connect', '554 5.7.1 Go away')
  dns.set('receiver.test', { MX: [mx('strict.test', 1), mx('away.test', 2)] })
  dns.set('strict.test', ['127.0.0.1'])
  dns.set('away.test', ['127.0.0.9'])

  expect(await sendOnce(directTo({ dns, port: server.port }), toReceiver)).toMatchObject([
    { kind: 'deferred', host: 'away.test', reason: 'The mail server refused the connection.' },
  ])
})

test('hosts of one preference get their turns by chance, others by preference', () => {
  const hosts = [mx('a', 20), mx('b', 10), mx('c', 10), mx('d', 30), mx('e', 40), mx('f', 50)].map(
    ({ exchange, priority }) => ({ name: exchange, preference: priority }),
  )
  const orders = new Set(
    Array.from({ length: 100 }, () =>
      inTurn(hosts)
        .map(({ name }) => name)
        .join(''),
    ),
  )
  expect(orders).toEqual(new Set(['bcad', 'cbad']))
})

test('a domain whose name servers say nothing is given room for a few conversations, and keeps none that is broken off', async () => {
  await using dns = await startDnsServer()
  dns.set('receiver.test', 'silence')
  const transport = directTo({ dns, port: 1 })
  const breaking = new AbortController()
  expect(transport.roomFor('receiver.test', 'single')).toBe(5)
  const sending = [transport.send(toReceiver, breaking.signal), transport.send(toReceiver, breaking.signal)]
  expect(transport.roomFor('receiver.test', 'single')).toBe(3)
  expect(transport.roomFor('other.test', 'single')).toBe(5)
  breaking.abort()

  const reason = 'The service stopped before the conversation ended.'
  expect((await Promise.all(sending)).flat()).toMatchObject([
    { kind: 'deferred', reason },
    { kind: 'deferred', reason },
  ])
  expect(transport.roomFor('receiver.test', 'single')).toBe(5)
  await transport.close()
})
