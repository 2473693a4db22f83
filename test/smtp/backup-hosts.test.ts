import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Outcome, Transport } from '../../server/smtp/transport.ts'
import { createTestTime } from '../support/clock.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import type { SmtpReaction } from '../support/scripted-smtp-session.ts'
import { createTestTimer } from '../support/timer.ts'
import { directTo } from './direct-setup.ts'
import { conversation } from './smtp-setup.ts'

/* A domain with two mail servers, the first of which is in a bad way. */

const never = new AbortController().signal
const greetingMs = 60_000

let dns: DnsServer
let first: ScriptedSmtp
let second: ScriptedSmtp
let time: ReturnType<typeof createTestTime>
let timer: ReturnType<typeof createTestTimer>
let transport: Transport

beforeEach(async () => {
  dns = await startDnsServer()
  first = await startScriptedSmtp()
  second = await startScriptedSmtp({ host: '127.0.0.2', port: first.port })
  dns.set('first.test', ['127.0.0.1'])
  dns.set('second.test', ['127.0.0.2'])
  dns.set('receiver.test', {
    MX: [
      { exchange: 'first.test', priority: 10 },
      { exchange: 'second.test', priority: 20 },
    ],
  })
  dns.set('lonely.test', { MX: [{ exchange: 'first.test', priority: 10 }] })
  time = createTestTime()
  timer = createTestTimer()
  transport = directTo({ dns, port: first.port, clock: time.clock, startTimer: timer.startTimer })
})
afterEach(async () => {
  await transport.close()
  await Promise.all([first.stop(), second.stop(), dns.stop()])
})

/** So many messages at once. */
async function send(count: number, destination = 'receiver.test'): Promise<Outcome[]> {
  const one = conversation({ destination })
  return (await Promise.all(Array.from({ length: count }, () => transport.send(one, never)))).flat()
}

describe('a mail server that does not answer', () => {
  beforeEach(() => first.at('connect', { next: 'silence' }))

  /** Sends, and lets the time pass that the first server is waited for, when it is dialled for so many times. */
  async function sendPast(count: number, dialled: number, destination?: string): Promise<Outcome[]> {
    const sending = send(count, destination)
    await first.reached('connect', dialled)
    timer.advance(greetingMs)
    return sending
  }

  test('a mail server that does not answer is waited for once, by as many as dialled it together: the others go to the next host with them', async () => {
    expect((await sendPast(20, 5)).map(({ kind }) => kind)).toEqual(Array(20).fill('accepted'))
    expect([first.connections, second.messages.length]).toEqual([5, 20])
  })

  test('a mail server that does not answer is left alone for five seconds, and twice as long each time, up to a minute', async () => {
    await sendPast(1, 1)
    for (const [seconds, dialled] of [5, 10, 20, 40, 60, 60].map((each, index) => [each, index + 2] as const)) {
      await time.advance(seconds * 1_000 - 1)
      await send(5)
      expect(first.connections).toBe(dialled - 1)
      await time.advance(1)
      await sendPast(5, dialled)
      expect(first.connections).toBe(dialled)
    }
    expect(second.messages).toHaveLength(61)
  })

  test('a mail server that is back is dialled by all, and left alone for five seconds only when it is gone again', async () => {
    await sendPast(1, 1)
    await time.advance(5_000)
    await sendPast(1, 2)
    first.at('connect', () => undefined)
    await time.advance(10_000)
    expect((await send(20)).map((outcome) => 'host' in outcome && outcome.host)).toEqual(Array(20).fill('first.test'))
    expect(first.mostOpen).toBe(5)

    first.dropAll()
    first.at('connect', { next: 'silence' })
    const { connections } = first
    await sendPast(1, connections + 1)
    await time.advance(5_000)
    await sendPast(1, connections + 2)
  })

  test('a mail server that does not answer does not narrow the way to the next host', async () => {
    await sendPast(1, 1)
    expect(transport.roomFor('receiver.test', 'single')).toBe(10)
  })

  test('a mail server that does not answer puts off at once all that has nowhere else to go', async () => {
    await sendPast(1, 1, 'lonely.test')
    expect([transport.roomFor('lonely.test', 'single'), transport.unusable('lonely.test')]).toMatchObject([
      0,
      { host: 'first.test' },
    ])
    expect(await send(5, 'lonely.test')).toMatchObject(
      Array(5).fill({ kind: 'deferred', unusable: true, host: 'first.test' }),
    )
    expect(first.connections).toBe(1)
  })
})

test('a mail server that one of many connections fails with gets everything over the others', async () => {
  first.at('connect', ({ count }) => (count === 0 ? { next: 'reset' } : undefined))
  const outcomes = await send(20, 'lonely.test')
  expect(outcomes.map(({ kind }) => kind)).toEqual(Array(20).fill('accepted'))
  expect(first.messages).toHaveLength(20)
})

test('a mail server that greets with 421 is not asked again for five seconds', async () => {
  first.at('connect', { reply: '421 4.3.2 Not now', next: 'drop' })
  expect(await send(1, 'lonely.test')).toMatchObject([{ kind: 'deferred', unusable: true, reply: '421 4.3.2 Not now' }])
  expect(await send(3, 'lonely.test')).toMatchObject(Array(3).fill({ kind: 'deferred', reply: '421 4.3.2 Not now' }))
  expect(first.connections).toBe(1)
  first.at('connect', () => undefined)
  await time.advance(5_000)
  expect(await send(1, 'lonely.test')).toMatchObject([{ kind: 'accepted' }])
})

test('a mail server that wants no more connections than it has keeps those', async () => {
  first.at('connect', ({ count }) => (count === 0 ? undefined : { reply: '421 4.7.0 Too many', next: 'drop' }))
  await send(1)
  const outcomes = await send(4)
  expect(outcomes.map(({ kind }) => kind)).toEqual(Array(4).fill('accepted'))
  await send(1)
  expect(first.messages.length).toBeGreaterThan(1)
  expect(first.messages.length + second.messages.length).toBe(6)
})

test('a mail server that refuses for good is asked by each message itself', async () => {
  first.at('connect', ({ count }) => (count === 0 ? { reply: '554 5.7.1 Go away', next: 'drop' } : undefined))
  expect(await send(1, 'lonely.test')).toMatchObject([{ kind: 'bounced' }])
  expect(await send(1, 'lonely.test')).toMatchObject([{ kind: 'accepted' }])
})

describe('a mail server that fails in the midst of it', () => {
  test.each<['mail' | 'rcpt' | 'data', SmtpReaction]>([
    ['mail', { next: 'drop' }],
    ['rcpt', { next: 'reset' }],
    ['data', { reply: '421 4.3.2 Not now', next: 'drop' }],
  ])('a mail server that fails at %s leaves the message to the next one', async (stage, reaction) => {
    first.at(stage, reaction)
    expect(await send(1)).toMatchObject([{ kind: 'accepted', host: 'second.test' }])
  })

  test('a mail server that failed and may have the message gets it again, later', async () => {
    first.at('message', { next: 'drop' })
    expect(await send(1)).toMatchObject([{ kind: 'deferred', unknown: true, host: 'first.test' }])
    expect(second.connections).toBe(0)
  })

  test('a mail server that failed is the one that is told of, where the next one cannot be talked to', async () => {
    first.at('mail', { next: 'drop' })
    second.at('connect', { reply: '554 5.7.1 Go away', next: 'drop' })
    expect(await send(1)).toMatchObject([{ kind: 'deferred', host: 'first.test' }])
  })

  test('a mail server that refuses for now is asked again itself', async () => {
    first.at('rcpt', '451 4.7.1 Greylisted')
    expect(await send(1)).toMatchObject([{ kind: 'deferred', host: 'first.test' }])
    expect(second.connections).toBe(0)
  })
})
