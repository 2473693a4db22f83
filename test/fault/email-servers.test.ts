import { Resolver } from 'node:dns/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { isDone, type MailEngine, startMailEngine } from '../support/mail-engine.ts'
import { patienceMs } from '../support/patience.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import type { SmtpReaction, SmtpStage } from '../support/scripted-smtp-session.ts'
import { rounds, within } from './support/rounds.ts'

/*
 * Straight to mail servers that come and go. Domains are looked up in a name server of the test; the servers
 * are at addresses of this machine, and time is moved.
 */

let dns: DnsServer
/** The hosts mx1.test and mx2.test. */
let first: ScriptedSmtp
let second: ScriptedSmtp
let engine: MailEngine

beforeEach(async () => {
  dns = await startDnsServer()
  first = await startScriptedSmtp({ tls: 'valid' })
  second = await startScriptedSmtp({ tls: 'valid', host: '127.0.0.2', port: first.port })
  dns.set('mx1.test', ['127.0.0.1'])
  dns.set('mx2.test', ['127.0.0.2'])
  dns.set('one.test', { MX: [{ exchange: 'mx1.test', priority: 10 }] })
  dns.set('two.test', { MX: [{ exchange: 'mx2.test', priority: 10 }] })
  dns.set('both.test', {
    MX: [
      { exchange: 'mx1.test', priority: 10 },
      { exchange: 'mx2.test', priority: 20 },
    ],
  })
  // It always answers: a busy machine must not make it seem silent.
  const resolver = new Resolver({ timeout: patienceMs, tries: 1 })
  resolver.setServers([dns.address])
  engine = await startMailEngine({
    port: first.port,
    to: {
      kind: 'direct',
      direct: { resolver, allowPrivateNetworks: true, ports: { smtp: first.port, https: 9 } },
    },
    concurrency: 4,
    connectionsPerHost: 2,
  })
})
afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  await Promise.all([first.stop(), second.stop(), dns.stop()])
})

const isDelivered = ({ status }: { status: string }) => status === 'delivered'
const isDeferred = ({ recipients }: { recipients: string[] }) => recipients.every((status) => status === 'deferred')
/** Longer than the first pause of a retry, and its jitter. Seconds. */
const firstPause = 361

const typesOf = async (emailId: string) => (await engine.timelineOf(emailId)).map(({ type }) => type)

test('a mail server that greylists gets the message when it is asked again, once', async () => {
  first.at('rcpt', ({ count }) => (count < 2 ? '451 4.7.1 Greylisted, come back later' : undefined))
  const id = await engine.send({ to: ['ada@one.test', 'bob@one.test'] })
  await engine.statusOf(id, isDeferred)
  await engine.advance(firstPause)
  await engine.statusOf(id, isDelivered)
  expect((await engine.eventsOf(id)).sort()).toEqual([
    ...['email.delivered', 'email.delivered', 'email.delivery_delayed', 'email.delivery_delayed'],
    ...['email.sent', 'email.sent'],
  ])
  expect(first.messages.flatMap(({ recipients }) => recipients).length).toBe(2)
})

test('a mail server that closes with 421 leaves the message to the next one of the domain, at once', async () => {
  first.at('connect', { reply: '421 4.3.2 Not now', next: 'drop' })
  const id = await engine.send({ to: ['ada@both.test'] })
  expect(await engine.statusOf(id, isDelivered)).toMatchObject({ attempts: [1] })
  expect(second.messages).toHaveLength(1)
})

test('a mail server that closes with 421 in the midst of it gets the message later', async () => {
  first.at('rcpt', ({ count }) => (count === 0 ? { reply: '421 4.3.2 Not now', next: 'drop' } : undefined))
  const id = await engine.send({ to: ['ada@one.test'] })
  await engine.statusOf(id, isDeferred)
  await engine.advance(firstPause)
  expect(await engine.statusOf(id, isDelivered)).toMatchObject({ attempts: [2] })
  expect(first.messages).toHaveLength(1)
})

test('a mail server that drops the line before it has the message gets it later, once', async () => {
  first.at('data', ({ count }) => (count === 0 ? { next: 'reset' } : undefined))
  const id = await engine.send({ to: ['ada@one.test'] })
  await engine.statusOf(id, isDeferred)
  await engine.advance(firstPause)
  await engine.statusOf(id, isDelivered)
  expect(engine.facts.some((fact) => fact.kind === 'deferred' && fact.unknown)).toBe(false)
  expect(first.messages).toHaveLength(1)
})

test('a mail server that drops the line before its final answer gets the same message again, and that is told', async () => {
  first.at('message', ({ count }) => {
    if (count === 0) first.dropAll()
    return undefined
  })
  const id = await engine.send({ to: ['ada@one.test'] })
  await engine.statusOf(id, isDeferred)
  await engine.advance(firstPause)
  await engine.statusOf(id, isDelivered)
  expect(await typesOf(id)).toEqual(['unknown', 'resent', 'delivered'])
  expect(first.messages.map(messageIdOf)).toEqual([`<${id}@example.test>`, `<${id}@example.test>`])
})

test('a mail server that drops the line after its final answer has it, and gets it once', async () => {
  first.at('message', { reply: '250 2.0.0 Taken', next: 'drop' })
  const id = await engine.send({ to: ['ada@one.test'] })
  expect(await engine.statusOf(id, isDelivered)).toMatchObject({ attempts: [1] })
  expect(first.messages).toHaveLength(1)
})

test('a mail server that is slow holds up nobody but itself', async () => {
  const patience = Promise.withResolvers<undefined>()
  first.at('mail', () => patience.promise)
  const slow: string[] = []
  const quick: string[] = []
  for (let n = 0; n < 30; n++) {
    slow.push(await engine.send({ to: [`n${n}@one.test`] }))
    quick.push(await engine.send({ to: [`n${n}@two.test`] }))
  }
  await untilDelivered(quick)
  expect(second.messages).toHaveLength(30)
  expect(first.messages).toEqual([])
  expect(first.mostOpen).toBe(2)
  patience.resolve(undefined)
  await untilDelivered(slow)
  expect(first.messages).toHaveLength(30)
})

const stages: readonly SmtpStage[] = ['connect', 'ehlo', 'starttls', 'mail', 'rcpt', 'data', 'content', 'message']
const failures: readonly SmtpReaction[] = [
  { reply: '421 4.3.2 Not now', next: 'drop' },
  { reply: '451 4.3.0 Try again later', next: 'drop' },
  '451 4.3.0 Try again later',
  { next: 'drop' },
  { next: 'reset' },
]

/** Has a server fail at any stage, one time in four, so many times in all. */
function flap(server: ScriptedSmtp, times: number): void {
  let left = times
  for (const stage of stages) {
    server.at(stage, () => {
      if (left === 0 || Math.random() < 0.75) return undefined
      left -= 1
      // A message that has begun has no answer before its end.
      const possible = stage === 'content' ? failures.slice(3) : failures
      return possible[Math.floor(Math.random() * possible.length)]
    })
  }
}

const times = rounds({ short: 1, long: 20 })

test(`servers that fail anywhere get everything in the end, ${times} times`, within(times), async () => {
  for (let time = 1; time <= times; time++) {
    const before = engine.facts.length
    flap(first, 15)
    flap(second, 15)
    const ids: string[] = []
    for (let n = 0; n < 20; n++) ids.push(await engine.send({ to: [`n${n}@both.test`, `n${n}@two.test`] }))
    await untilDelivered(ids)
    const unknown = engine.facts.slice(before).filter((fact) => fact.kind === 'deferred' && fact.unknown)
    for (const id of ids) {
      const copies = [...first.messages, ...second.messages].filter((message) => messageIdOf(message).includes(id))
      const doubtful = unknown.filter((fact) => fact.emailId === id).length
      expect(copies.flatMap(({ recipients }) => recipients).length).toBeLessThanOrEqual(2 + doubtful)
      const types = await typesOf(id)
      expect(types.filter((type) => type === 'delivered')).toHaveLength(2)
      expect(types.filter((type) => type === 'unknown')).toHaveLength(doubtful)
    }
  }
})

async function untilDelivered(ids: readonly string[]): Promise<void> {
  await engine.untilDone(ids)
  for (const id of ids) {
    const { status } = await engine.statusOf(id, isDone)
    if (status !== 'delivered') throw new Error(`an email is ${status}: ${JSON.stringify(await engine.timelineOf(id))}`)
  }
}

function messageIdOf({ data }: { data: Buffer }): string {
  return /^Message-ID: (.+)$/im.exec(data.toString('latin1'))?.[1]?.trim() ?? 'nothing'
}
