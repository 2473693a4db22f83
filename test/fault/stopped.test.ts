import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { answer } from '../support/receiver.ts'
import { rounds, within } from './support/rounds.ts'
import { type Stage, setStage } from './support/stage.ts'

/*
 * SIGTERM under load, while some endpoints take their time and others never answer. Nothing lapses
 * here: what another process delivers at once was handed back.
 */

/** As in SHUTDOWN_TIMEOUT_SECONDS, whose default is 30. */
const timeoutSeconds = rounds({ short: 1, long: 30 })
/** Beyond the time-out, for closing. The whole promise is 35 s. */
const closingMs = 5_000
/** Far less than claims need to lapse. */
const atOnceMs = 15_000
const slowAnswerMs = 300
const stops = rounds({ short: 1, long: 4 })

let database: TestDatabase
let stage: Stage

beforeEach(async () => {
  database = await createTestDatabase()
  stage = await setStage({
    ...database,
    webhooks: 2,
    env: { SHUTDOWN_TIMEOUT_SECONDS: String(timeoutSeconds), WEBHOOK_CONCURRENCY: '4' },
  })
})
afterEach(async () => {
  await stage[Symbol.asyncDispose]()
  await database.drop()
})

test(
  'a process told to stop under load ends in time, and hands back what it did not finish',
  within(stops * 4),
  async () => {
    await using load = stage.startLoad()
    for (let stop = 1; stop <= stops; stop++) {
      // One webhook answers late, the other not at all.
      stage.recorder.respond((exchange) => {
        if (exchange.request.url.endsWith('/1')) void delay(slowAnswerMs).then(() => answer(200)(exchange))
      })
      await load.acknowledged(40)
      const begin = performance.now()
      stage.service.child.kill('SIGTERM')
      expect(await stage.service.exit).toEqual({ code: 0, signal: null })
      expect(performance.now() - begin).toBeLessThan(timeoutSeconds * 1000 + closingMs)
      stage.recorder.respond(answer(200))
      await stage.restart()
    }
    await load.acknowledged(1)
    await load.stop()
    expect(await stage.verdict({ patienceMs: atOnceMs })).toEqual([])
  },
)
