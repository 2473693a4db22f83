import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { answer } from '../support/receiver.ts'
import { rounds, within } from './support/rounds.ts'
import { type Stage, setStage } from './support/stage.ts'

/*
 * SIGTERM under load, while one endpoint takes its time and another never answers. Nothing lapses
 * here: what the next process delivers at once was handed back.
 */

let database: TestDatabase
let stage: Stage

beforeEach(async () => {
  database = await createTestDatabase()
})
afterEach(async () => {
  await stage[Symbol.asyncDispose]()
  await database.drop()
})

const slowAnswerMs = 300

/** Stops the process in the midst of its work, and starts the next one, for which all endpoints answer. */
async function stopUnderLoad(): Promise<void> {
  stage.recorder.respond((exchange) => {
    if (exchange.request.url.endsWith('/1')) void delay(slowAnswerMs).then(() => answer(200)(exchange))
  })
  await using load = stage.startLoad()
  await load.acknowledged(40)
  stage.service.child.kill('SIGTERM')
  expect(await stage.service.exit).toEqual({ code: 0, signal: null })
  stage.recorder.respond(answer(200))
  await stage.restart()
  await load.acknowledged(1)
  await load.stop()
}

/** The attempts that ended because an endpoint was silent for 30 s: whoever ends in time waits for none. */
function timedOut(): Promise<{ error: string | null }[]> {
  return stage.db.selectFrom('attempts').select('error').where('error', 'like', 'Timed out%').execute()
}

const cases = [
  // It recovers in far less time than a claim needs to lapse, and a retry to fall due.
  { timeoutSeconds: 1, stops: rounds({ short: 1, long: 10 }), patienceMs: 15_000, waitsForEndpoints: false },
  // The default. As long as an endpoint may take: some of those that are silent have failed by then, and
  // are tried again after a minute.
  { timeoutSeconds: 30, stops: 2, patienceMs: 120_000, waitsForEndpoints: true },
].slice(0, rounds({ short: 1, long: 2 }))

test.each(cases)(
  'SIGTERM with a time-out of $timeoutSeconds s, $stops times: ends in time, hands back the rest',
  within(20),
  async ({ timeoutSeconds, stops, patienceMs, waitsForEndpoints }) => {
    const env = { SHUTDOWN_TIMEOUT_SECONDS: String(timeoutSeconds), ENDPOINT_MAX_IN_FLIGHT: '4' }
    stage = await setStage({ ...database, webhooks: 2, env })
    for (let stop = 1; stop <= stops; stop++) {
      await stopUnderLoad()
      expect(await stage.verdict({ patienceMs })).toEqual([])
      if (!waitsForEndpoints) expect(await timedOut()).toEqual([])
    }
  },
)
