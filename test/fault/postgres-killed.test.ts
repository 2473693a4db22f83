import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Postgres, startPostgres } from './support/postgres.ts'
import { rounds, within } from './support/rounds.ts'
import { type Stage, setStage } from './support/stage.ts'

let postgres: Postgres
let stage: Stage

beforeEach(async () => {
  postgres = await startPostgres()
  stage = await setStage(postgres)
})
afterEach(async () => {
  await stage[Symbol.asyncDispose]()
  await postgres[Symbol.asyncDispose]()
})

const kills = rounds({ short: 2, long: 30 })
/** PostgreSQL is killed this long after writes were acknowledged again, at most. Milliseconds. */
const longestLifeMs = 600

// The service lives through it all, and has what it sent in hand until it is settled.
test(`nothing is lost or doubled when PostgreSQL is killed ${kills} times under load`, within(kills), async () => {
  await using load = stage.startLoad()
  for (let kill = 1; kill <= kills; kill++) {
    await load.acknowledged(5)
    await delay(Math.random() * longestLifeMs)
    await postgres.kill()
    await load.refused(1)
    await postgres.restart()
  }
  await load.acknowledged(20)
  await load.stop()
  expect(await stage.verdict()).toEqual([])
})
