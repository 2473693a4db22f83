import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { answer, silence } from '../support/receiver.ts'
import { claimsOf, lapseClaims } from './support/claims.ts'
import { rounds, within } from './support/rounds.ts'
import { cutSessions, startHolder, untilSessionsRest } from './support/sessions.ts'
import { type Stage, setStage } from './support/stage.ts'

let database: TestDatabase
let stage: Stage

beforeEach(async () => {
  database = await createTestDatabase()
})
afterEach(async () => {
  await stage[Symbol.asyncDispose]()
  await database.drop()
})

/** A process is killed this long after it is ready, at most. Milliseconds. */
const longestLifeMs = 600
/** After so many kills the claims of the dead lapse, so that there is always something to send again. */
const killsBetweenLapses = 4
const kills = rounds({ short: 3, long: 100 })

test(`nothing is lost when the service is killed ${kills} times at random moments`, within(kills), async () => {
  stage = await setStage(database)
  await using load = stage.startLoad()
  for (let kill = 1; kill <= kills; kill++) {
    await delay(Math.random() * longestLifeMs)
    await stage.kill()
    if (kill % killsBetweenLapses === 0) await lapseClaims(stage)
    await stage.restart()
  }
  await load.acknowledged(20)
  await load.stop()
  await stage.kill()
  await lapseClaims(stage)
  await stage.restart()
  expect(await stage.verdict()).toEqual([])
})

/** Kills the process while its statement waits for a lock, and the statement with it. */
async function killWaiting(): Promise<void> {
  await untilSomebodyWaits(stage.db)
  await stage.kill()
  // The server would only find out that nobody waits for the answer after it has done the work.
  await cutSessions(stage.db)
}

async function restartWithLapsedClaims(): Promise<void> {
  await lapseClaims(stage)
  await stage.restart()
}

const statuses = async () =>
  (await stage.db.selectFrom('deliveries').select('status').execute()).map(({ status }) => status)

describe('nothing is lost when the service is killed', () => {
  beforeEach(async () => {
    stage = await setStage({ ...database, webhooks: 1 })
    // One event whose delivery is due, and no process.
    stage.recorder.respond(silence)
    const load = stage.startLoad()
    await stage.recorder.received(1)
    await load.stop()
    await stage.kill()
    await lapseClaims(stage)
    await stage.restart()
    await expect.poll(async () => (await claimed()).length).toBeGreaterThan(0)
    await stage.kill()
    await lapseClaims(stage)
  })

  const times = rounds({ short: 1, long: 10 })

  test(`a kill between the claim and the POST loses nothing, ${times} times`, within(times), async () => {
    const before = stage.recorder.arrivals.length
    for (let time = 1; time <= times; time++) {
      // The webhooks of claimed deliveries cannot be read, so nothing is sent.
      await using holder = await startHolder(stage.connectionString)
      await holder.run('LOCK TABLE webhooks IN ACCESS EXCLUSIVE MODE')
      await stage.restart()
      await expect.poll(async () => (await claimed()).length).toBeGreaterThan(0)
      await killWaiting()
      await lapseClaims(stage)
    }
    expect(stage.recorder.arrivals).toHaveLength(before)
    stage.recorder.respond(answer(200))
    await stage.restart()
    expect(await stage.verdict()).toEqual([])
  })

  test(`a kill between the POST and the settle loses nothing, ${times} times`, within(times), async () => {
    for (let time = 1; time <= times; time++) {
      const taken = stage.recorder.arrivals.filter((arrival) => arrival.taken).length
      await using holder = await startHolder(stage.connectionString)
      let locking: Promise<void> | undefined
      stage.recorder.respond((exchange) => {
        locking ??= holder.run('SELECT FROM deliveries FOR UPDATE')
        void locking.then(() => answer(200)(exchange))
      })
      await restartWithLapsedClaims()
      await killWaiting()
      expect(stage.recorder.arrivals.filter((arrival) => arrival.taken).length).toBeGreaterThan(taken)
      expect(await statuses()).toContain('pending')
    }
    stage.recorder.respond(answer(200))
    await restartWithLapsedClaims()
    expect(await stage.verdict()).toEqual([])
  })
})

test('nothing is lost when the service is killed between the commit of a lease and the POST', within(1), async () => {
  // The first request is not answered, and there is to be one at once: what else is leased is in hand, unsent.
  stage = await setStage({ ...database, webhooks: 1, env: { ENDPOINT_MAX_IN_FLIGHT: '1' } })
  stage.recorder.respond(silence)
  await using load = stage.startLoad()
  await expect.poll(stopsWithUnsent).toBe(true)
  await stage.kill()
  await lapseClaims(stage)
  stage.recorder.respond(answer(200))
  await stage.restart()
  await load.acknowledged(4)
  await load.stop()
  expect(await stage.verdict()).toEqual([])
})

const writings = rounds({ short: 1, long: 10 })

test(
  `nothing is lost when the service is killed between the POST of a leased event and its writing, ${writings} times`,
  within(writings),
  async () => {
    stage = await setStage({ ...database, webhooks: 1 })
    await using load = stage.startLoad()
    for (let time = 1; time <= writings; time++) {
      const holder = await startHolder(stage.connectionString)
      let locking: Promise<void> | undefined
      stage.recorder.respond((exchange) => {
        locking ??= holder.run('SELECT FROM outbox_rows WHERE lease IS NOT NULL FOR UPDATE')
        void locking.then(() => answer(200)(exchange))
      })
      await expect.poll(() => locking !== undefined).toBe(true)
      await killWaiting()
      const taken = new Set(stage.recorder.arrivals.flatMap(({ eventId, taken }) => (taken ? [eventId] : [])))
      const unwritten = (await leasedEvents()).filter((id) => taken.has(id))
      expect(unwritten).not.toEqual([])
      // What it holds would keep the leases from lapsing.
      await holder[Symbol.asyncDispose]()
      await restartWithLapsedClaims()
    }
    stage.recorder.respond(answer(200))
    await load.acknowledged(4)
    await load.stop()
    expect(await stage.verdict()).toEqual([])
  },
)

/**
 * Stops the process, and returns whether it has then something in hand that was not sent: it stays so until the kill.
 * Otherwise the process goes on.
 */
async function stopsWithUnsent(): Promise<boolean> {
  stage.service.child.kill('SIGSTOP')
  await untilSessionsRest(stage.db)
  const unsent = await unsentInHand()
  if (unsent.length === 0) stage.service.child.kill('SIGCONT')
  return unsent.length > 0
}

/** Events in hand of which nothing was sent: leased, or with a delivery whose job is claimed. */
async function unsentInHand(): Promise<string[]> {
  const leased = await leasedEvents()
  const claims = (await claimsOf(stage.db)).map(({ of }) => of)
  const deliveries = await stage.db.selectFrom('deliveries').select(['id', 'event_id']).execute()
  const sent = new Set(stage.recorder.arrivals.map(({ eventId }) => eventId))
  const claimedOf = deliveries.flatMap(({ id, event_id: eventId }) => (claims.includes(id) ? [eventId] : []))
  return [...leased, ...claimedOf].filter((id) => !sent.has(id))
}

async function leasedEvents(): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    SELECT event_id AS id FROM outbox_rows WHERE lease IS NOT NULL
  `.execute(stage.db)
  return rows.map(({ id }) => id)
}

async function claimed(): Promise<unknown[]> {
  return (await sql`SELECT FROM pgboss.job WHERE name = 'deliveries' AND state = 'active'`.execute(stage.db)).rows
}
