import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { brokenOff } from '../../server/smtp/connection.ts'
import type { Transport } from '../../server/smtp/transport.ts'
import { createTestTime } from '../support/clock.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import type { SmtpReaction, SmtpStage } from '../support/scripted-smtp-session.ts'
import { directTo } from './direct-setup.ts'
import { conversation } from './smtp-setup.ts'

/* The signal `waiting` ends the wait of a message, as when its campaign is paused. A conversation goes on. */

const never = new AbortController().signal
const destination = 'receiver.test'

let dns: DnsServer
let first: ScriptedSmtp
let second: ScriptedSmtp
let time: ReturnType<typeof createTestTime>
let transport: Transport

beforeEach(async () => {
  dns = await startDnsServer()
  first = await startScriptedSmtp()
  second = await startScriptedSmtp({ host: '127.0.0.2', port: first.port })
  dns.set('first.test', ['127.0.0.1'])
  dns.set('second.test', ['127.0.0.2'])
  const MX = ['first.test', 'second.test'].map((exchange, priority) => ({ exchange, priority }))
  dns.set(destination, { MX })
  time = createTestTime()
  transport = directTo({ dns, port: first.port, clock: time.clock })
})
afterEach(async () => {
  await transport.close()
  await Promise.all([first.stop(), second.stop(), dns.stop()])
})

/** Begins to send a message whose wait can be ended. */
function begin() {
  const waiting = new AbortController()
  const outcomes = transport.send({ ...conversation({ destination }), waiting: waiting.signal }, never)
  return { outcomes, endWait: () => waiting.abort() }
}

const send = () => transport.send(conversation({ destination }), never)
const untilAsked = (name: string) => expect.poll(() => dns.queries.map((query) => query.name)).toContain(name)

/** Holds the reaction of a server at a stage until it is released. */
function hold(server: ScriptedSmtp, stage: SmtpStage): (reaction?: SmtpReaction) => void {
  const held = Promise.withResolvers<SmtpReaction | undefined>()
  server.at(stage, () => held.promise)
  return held.resolve
}

const isUsable = () => transport.unusable(destination) === null

describe('a wait that ends while names are looked up', () => {
  test('a wait that ends while the servers of a domain are looked up is no attempt, and says nothing of the domain', async () => {
    dns.set(destination, 'silence')
    const { outcomes, endWait } = begin()
    await untilAsked(destination)
    endWait()
    expect(await outcomes).toMatchObject([{ kind: 'deferred', unusable: true, reason: brokenOff().message }])
    expect(isUsable()).toBe(true)
  })

  test('a wait that ends while the address of a server is looked up says nothing of that server', async () => {
    dns.set('first.test', 'silence')
    const { outcomes, endWait } = begin()
    await untilAsked('first.test')
    endWait()
    expect(await outcomes).toMatchObject([{ kind: 'deferred', unusable: true, reason: brokenOff().message }])
    expect([isUsable(), second.connections]).toEqual([true, 0])
    dns.set('first.test', ['127.0.0.1'])
    expect(await send()).toMatchObject([{ kind: 'accepted', host: 'first.test' }])
  })
})

describe('a first server that breaks off after the wait has ended', () => {
  test.each<SmtpReaction>([{ next: 'drop' }, { next: 'reset' }])(
    'a first server that breaks off (%j) leaves the message to no other one, and the attempt counts',
    async (reaction) => {
      const release = hold(first, 'mail')
      const { outcomes, endWait } = begin()
      await first.reached('mail')
      endWait()
      release(reaction)
      expect(await outcomes).toMatchObject([
        { kind: 'deferred', unusable: false, unknown: false, reply: null, host: 'first.test' },
      ])
      expect([isUsable(), second.connections]).toEqual([true, 0])
    },
  )

  test('a first server that breaks off leaves the message to the next one until the wait ends, and the attempt counts', async () => {
    first.at('mail', { next: 'drop' })
    const release = hold(second, 'connect')
    const { outcomes, endWait } = begin()
    await second.reached('connect')
    endWait()
    expect(await outcomes).toMatchObject([{ kind: 'deferred', unusable: false, unknown: false, host: 'first.test' }])
    release()
    expect([isUsable(), second.messages.length]).toEqual([true, 0])
  })

  test('a first server that has closed an idle connection is not dialled anew, and no attempt counts', async () => {
    await send()
    const release = hold(first, 'mail')
    const { outcomes, endWait } = begin()
    await first.reached('mail', 2)
    endWait()
    release({ next: 'drop' })
    expect(await outcomes).toMatchObject([{ kind: 'deferred', unusable: true, reply: null }])
    expect([isUsable(), first.connections, second.connections]).toEqual([true, 1, 0])
  })
})

describe('a domain in back-off', () => {
  beforeEach(async () => {
    for (const server of [first, second]) server.at('connect', { reply: '421 4.3.2 Not now', next: 'drop' })
    await send()
    expect(isUsable()).toBe(false)
    await time.advance(60_000)
    for (const server of [first, second]) server.at('connect', () => undefined)
  })

  test.each([
    ['takes', undefined, 'accepted'],
    ['refuses for now', '451 4.7.1 Greylisted', 'deferred'],
    ['refuses', '550 5.1.1 Nobody', 'bounced'],
  ])('a server that %s a message after the wait has ended ends the back-off', async (_what, reaction, kind) => {
    const release = hold(first, 'rcpt')
    const { outcomes, endWait } = begin()
    await first.reached('rcpt')
    endWait()
    release(reaction)
    expect(await outcomes).toMatchObject([{ kind, host: 'first.test' }])
    expect(isUsable()).toBe(true)
  })

  test('a wait that ends before a server has spoken leaves the back-off as it is', async () => {
    hold(first, 'connect')
    const { outcomes, endWait } = begin()
    await first.reached('connect', 2)
    endWait()
    expect(await outcomes).toMatchObject([{ kind: 'deferred', unusable: true }])
    expect(transport.unusable(destination)).toMatchObject({ reply: '421 4.3.2 Not now' })
  })
})
