import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { patienceMs } from '../support/patience.ts'
import { setCampaignStage } from './support/campaign-stage.ts'
import { type MailStage, setMailStage } from './support/mail-stage.ts'
import { rounds, within } from './support/rounds.ts'

/*
 * SIGTERM under load, while the mail server takes its time, and once never answers. Nothing lapses here:
 * what the next process sends at once was put back.
 */

let database: TestDatabase
let stage: MailStage

beforeEach(async () => {
  database = await createTestDatabase()
})
afterEach(async () => {
  await stage[Symbol.asyncDispose]()
  await database.drop()
})

const slowAnswerMs = 300
const stops = rounds({ short: 1, long: 10 })
const env = { SHUTDOWN_TIMEOUT_SECONDS: '1', MAIL_CONNECTIONS_PER_HOST: '2' }

/** Stops the process. It must end by itself and well. */
async function stop(): Promise<void> {
  stage.service.child.kill('SIGTERM')
  expect(await stage.service.exit).toEqual({ code: 0, signal: null })
}

test(`SIGTERM under load, ${stops} times: ends in time, and what was not sent is sent once`, within(20), async () => {
  stage = await setMailStage({ ...database, env })
  for (let time = 1; time <= stops; time++) {
    const silent = Promise.withResolvers<void>()
    stage.server.at('mail', () => {
      stage.server.at('mail', () => undefined)
      silent.resolve()
      return { next: 'silence' }
    })
    stage.server.at('message', () => delay(slowAnswerMs, undefined))
    await using load = stage.startLoad()
    await Promise.all([load.acknowledged(40), silent.promise])
    await stop()
    stage.server.at('message', () => undefined)
    await stage.restart()
    await load.acknowledged(1)
    await load.stop()
    // It recovers in far less time than a claim needs to lapse.
    expect(await stage.verdict({ patienceMs: 15_000 })).toEqual([])
    expect(stage.server.messages).toHaveLength(stage.ledger.marks.size)
    expect(await stage.resent()).toBe(0)
  }
})

test('SIGTERM while the mail server never answers a message: ends in time, and writes down that it may have it', {
  ...within(1),
}, async () => {
  stage = await setMailStage({ ...database, env })
  stage.server.at('message', { next: 'silence' })
  await stage.send()
  await stage.server.reached('message')
  await stop()
  const recipients = await stage.db.selectFrom('email_recipients').select(['status', 'reason']).execute()
  expect(recipients).toEqual(
    Array(3).fill({ status: 'deferred', reason: expect.stringContaining('may have taken the message') }),
  )
})

test('SIGTERM while a turn of a campaign takes its time: emails are given up at the same deadline, and written down', {
  ...within(1),
}, async () => {
  const campaigns = await setCampaignStage({ ...database, env })
  stage = campaigns.mail
  stage.server.at('message', { next: 'silence' })
  await stage.send()
  await stage.server.reached('message')
  const statuses = async () =>
    (await stage.db.selectFrom('email_recipients').select('status').execute()).map(({ status }) => status)
  await stage.db.transaction().execute(async (trx) => {
    // The statement that lists the recipients of the campaign waits for this lock.
    await sql`LOCK TABLE campaign_recipients IN SHARE MODE`.execute(trx)
    await campaigns.begin({ people: 1 })
    const waiting = sql<{ count: number }>`
      SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted AND relation = 'campaign_recipients'::regclass
    `
    const count = async () => (await waiting.execute(stage.db)).rows[0]?.count
    await expect.poll(count, { timeout: patienceMs }).toBe(1)
    stage.service.child.kill('SIGTERM')
    await expect.poll(statuses, { timeout: patienceMs }).toEqual(Array(3).fill('deferred'))
  })
  expect(await stage.service.exit).toEqual({ code: 0, signal: null })
})
