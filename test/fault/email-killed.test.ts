import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { priorityOfRetry } from '../../server/queue/priority-ranges.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import type { SmtpStage } from '../support/scripted-smtp-session.ts'
import { lapseClaims } from './support/claims.ts'
import { type MailStage, setMailStage } from './support/mail-stage.ts'
import { rounds, within } from './support/rounds.ts'
import { type Holder, startHolder } from './support/sessions.ts'

let database: TestDatabase
let stage: MailStage

beforeAll(async () => {
  database = await createTestDatabase()
  stage = await setMailStage({
    ...database,
    // One command at a time, so that each point is one.
    extensions: ['8BITMIME', 'AUTH PLAIN'],
    isGuarded: true,
    env: { MAIL_CONNECTIONS_PER_HOST: '20' },
  })
})
beforeEach(() => {
  for (const at of ['content', 'message'] as const) stage.server.at(at, () => undefined)
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await database.drop()
})

async function restartWithLapsedClaims(): Promise<void> {
  await lapseClaims(stage)
  await stage.restart()
}

/** A process is killed this long after it is ready, at most. Milliseconds. */
const longestLifeMs = 600
/** The mail server takes this long to answer a message, at most. Milliseconds. */
const longestAnswerMs = 40
/** After so many kills the claims of the dead lapse, so that there is always something to send again. */
const killsBetweenLapses = 2
const kills = rounds({ short: 2, long: 60 })
/** Who send at once without an idempotency key, and share transactions therefore. */
const careless = { repeats: false, writers: 8 }

test(`no recipient is lost when the service is killed ${kills} times at random moments`, within(kills), async () => {
  stage.server.at('message', () => delay(Math.random() * longestAnswerMs, undefined))
  await using load = stage.startLoad()
  await using sharing = stage.startLoad(careless)
  for (let kill = 1; kill <= kills; kill++) {
    await delay(Math.random() * longestLifeMs)
    await stage.kill()
    if (kill % killsBetweenLapses === 0) await lapseClaims(stage)
    await stage.restart()
  }
  await Promise.all([load.acknowledged(20), sharing.acknowledged(20)])
  await Promise.all([load.stop(), sharing.stop()])
  await stage.kill()
  await restartWithLapsedClaims()
  expect(await stage.verdict()).toEqual([])
  expect(await stage.shared()).toBeGreaterThan(0)
})

/** Where connections are held, one at each; `recipient`: at which RCPT. */
const points: readonly { stage: SmtpStage; recipient?: number }[] = [
  { stage: 'connect' },
  { stage: 'ehlo' },
  { stage: 'starttls' },
  { stage: 'auth' },
  { stage: 'mail' },
  { stage: 'rcpt', recipient: 0 },
  { stage: 'rcpt', recipient: 1 },
  { stage: 'rcpt', recipient: 2 },
  { stage: 'data' },
  { stage: 'message' },
]
const recipientsOfEach = 3

/** Holds the first connections from now on, each at its point. Answers when all are there, and what lets them go. */
function holdAtPoints(first: number): { reached: Promise<void>; release(): void } {
  const reached = Promise.withResolvers<void>()
  const released = Promise.withResolvers<undefined>()
  const recipients = new Map<number, number>()
  let missing = points.length
  for (const at of new Set(points.map((point) => point.stage))) {
    stage.server.at(at, ({ connection }) => {
      const point = points[connection - first]
      const recipient = recipients.get(connection) ?? 0
      if (at === 'rcpt') recipients.set(connection, recipient + 1)
      if (point?.stage !== at || (point.recipient ?? recipient) !== recipient) return undefined
      missing -= 1
      if (missing === 0) reached.resolve()
      return released.promise
    })
  }
  return { reached: reached.promise, release: () => released.resolve(undefined) }
}

const times = rounds({ short: 1, long: 10 })

test(`a kill at any point of the conversation loses no recipient, ${times} times at each`, within(times), async () => {
  for (let time = 1; time <= times; time++) {
    const whole = stage.server.messages.length
    // No connection that was kept: each email opens one.
    stage.server.dropAll()
    const held = holdAtPoints(stage.server.connections)
    for (const _ of points) await stage.send()
    await held.reached
    await stage.kill()
    held.release()
    // Held when it was there, and answered when nobody listened any more.
    await expect.poll(() => stage.server.messages.length).toBe(whole + 1)
    await restartWithLapsedClaims()
    expect(await stage.verdict()).toEqual([])
    expect(await stage.resent()).toBe(points.length * recipientsOfEach)
    expect(stage.server.messages).toHaveLength(whole + 1 + points.length)
  }
})

test(`a kill in the middle of a large message loses no recipient, ${times} times`, within(times), async () => {
  for (let time = 1; time <= times; time++) {
    const whole = stage.server.messages.length
    stage.server.at('content', () => {
      stage.service.child.kill('SIGKILL')
      return undefined
    })
    await stage.send({ bytes: 8 * 2 ** 20 })
    await stage.service.exit
    await stage.kill()
    stage.server.at('content', () => undefined)
    expect(stage.server.messages).toHaveLength(whole)
    await restartWithLapsedClaims()
    expect(await stage.verdict()).toEqual([])
    expect(stage.server.messages).toHaveLength(whole + 1)
  }
})

test(`a kill before the answer is written down loses no recipient, ${times} times`, within(times), async () => {
  for (let time = 1; time <= times; time++) {
    const whole = stage.server.messages.length
    await using holder = await startHolder(stage.connectionString)
    stage.server.at('message', async () => {
      await holder.run('SELECT FROM email_recipients FOR UPDATE')
      return undefined
    })
    await stage.send()
    await untilSomebodyWaits(stage.db)
    await stage.kill()
    await holder.commit()
    stage.server.at('message', () => undefined)
    await restartWithLapsedClaims()
    expect(await stage.verdict()).toEqual([])
    expect(stage.server.messages).toHaveLength(whole + 2)
  }
})

/** Brings the time forward for which emails are scheduled, of their recipients in the transaction that has locked them. */
async function makeScheduledDue(holder: Holder): Promise<void> {
  const now = new Date()
  await holder.run('UPDATE email_recipients SET next_attempt_at = $1 WHERE next_attempt_at > $1', [now])
  await stage.db.updateTable('emails').set({ scheduled_at: now }).where('scheduled_at', '>', now).execute()
  await sql`
    UPDATE pgboss.job SET start_after = ${now}, priority = ${priorityOfRetry(now)}
    WHERE name = 'emails' AND start_after > ${now}
  `.execute(stage.db)
}

test(`a kill between claim and beginning has an email sent once, ${times} times`, within(times), async () => {
  for (let time = 1; time <= times; time++) {
    const whole = stage.server.messages.length
    await using holder = await startHolder(stage.connectionString)
    await stage.send({ scheduledAt: new Date(Date.now() + 3_600_000) })
    await holder.run('SELECT FROM email_recipients FOR UPDATE')
    await makeScheduledDue(holder)
    await untilSomebodyWaits(stage.db)
    await stage.kill()
    await holder.commit()
    await restartWithLapsedClaims()
    expect(await stage.verdict()).toEqual([])
    expect(stage.server.messages).toHaveLength(whole + 1)
    expect(await stage.resent()).toBe(0)
  }
})

test('what a process was sending that was frozen meanwhile is told of once', within(1), async () => {
  const { promise: thaw, resolve: release } = Promise.withResolvers<undefined>()
  const whole = stage.server.messages.length
  const reached = Promise.withResolvers<undefined>()
  stage.server.at('message', () => {
    stage.server.at('message', () => undefined)
    reached.resolve(undefined)
    return thaw
  })
  await stage.send()
  await reached.promise
  const frozen = stage.service
  frozen.child.kill('SIGSTOP')
  await stage.noteLost()
  await restartWithLapsedClaims()
  await expect.poll(async () => (await statuses()).every((status) => status === 'accepted')).toBe(true)
  release(undefined)
  frozen.child.kill('SIGCONT')
  await expect.poll(() => stage.server.messages.length).toBe(whole + 2)
  frozen.child.kill('SIGTERM')
  expect(await frozen.exit).toEqual({ code: 0, signal: null })
  expect(await stage.verdict()).toEqual([])
})

async function statuses(): Promise<string[]> {
  const { rows } = await sql<{ status: string }>`SELECT status FROM email_recipients`.execute(stage.db)
  return rows.map(({ status }) => status)
}
