import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { rounds, within } from './support/rounds.ts'
import { cutSessions, startHolder } from './support/sessions.ts'
import { type Stage, setStage } from './support/stage.ts'

let database: TestDatabase
let stage: Stage

/** So small that a few requests exhaust it. */
const poolSize = 2

beforeEach(async () => {
  database = await createTestDatabase()
  stage = await setStage({ ...database, env: { DATABASE_POOL_SIZE: String(poolSize) } })
})
afterEach(async () => {
  await stage[Symbol.asyncDispose]()
  await database.drop()
})

const cuts = rounds({ short: 4, long: 100 })
/** Between two cuts, at most. Milliseconds. */
const longestRestMs = 400

test(`nothing is lost or doubled when all connections are cut ${cuts} times`, within(cuts), async () => {
  await using load = stage.startLoad()
  let count = 0
  for (let cut = 1; cut <= cuts; cut++) {
    await delay(Math.random() * longestRestMs)
    count += await cutSessions(stage.db)
  }
  expect(count).toBeGreaterThan(cuts)
  await load.acknowledged(20)
  await load.stop()
  expect(await stage.verdict()).toEqual([])
})

describe('while the pool is exhausted', () => {
  const times = rounds({ short: 1, long: 10 })

  test(`requests are refused, deliveries go on, nothing is lost (${times} times)`, within(times), async () => {
    await using load = stage.startLoad()
    for (let time = 1; time <= times; time++) {
      await load.acknowledged(5)
      await using holder = await startHolder(stage.connectionString)
      await holder.run('LOCK TABLE subscribers IN ACCESS EXCLUSIVE MODE')
      await untilSomebodyWaits(stage.db)
      await load.refused(1)
      // Nobody can write, but what was written is delivered.
      await expect.poll(undelivered).toBe(0)
      await holder.commit()
    }
    await load.acknowledged(20)
    await load.stop()
    expect(await stage.verdict()).toEqual([])
  })
})

async function undelivered(): Promise<number> {
  const { rows } = await sql<{ left: number }>`
    SELECT ((SELECT count(*) FROM outbox_rows) + (SELECT count(*) FROM deliveries WHERE status = 'pending'))::int AS left
  `.execute(stage.db)
  return rows[0]?.left ?? -1
}
