import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Transport } from '../../server/smtp/transport.ts'
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
let transport: Transport

beforeEach(async () => {
  dns = await startDnsServer()
  first = await startScriptedSmtp()
  second = await startScriptedSmtp({ host: '127.0.0.2', port: first.port })
  dns.set('first.test', ['127.0.0.1'])
  dns.set('second.test', ['127.0.0.2'])
  const MX = ['first.test', 'second.test'].map((exchange, priority) => ({ exchange, priority }))
  dns.set(destination, { MX })
  transport = directTo({ dns, port: first.port })
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

/** Holds the reaction of a server at a stage until it is released. */
function hold(server: ScriptedSmtp, stage: SmtpStage): (reaction?: SmtpReaction) => void {
  const held = Promise.withResolvers<SmtpReaction | undefined>()
  server.at(stage, () => held.promise)
  return held.resolve
}

const isUsable = () => transport.unusable(destination) === null

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
