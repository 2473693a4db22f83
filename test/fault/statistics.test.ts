import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ServiceProcess } from '../main/service-process.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { miscounted } from '../support/statistics.ts'
import { lapseClaims } from './support/claims.ts'
import { rounds, within } from './support/rounds.ts'
import { cutSessions, startHolder } from './support/sessions.ts'
import { type Stage, setStage } from './support/stage.ts'

let database: TestDatabase
let stage: Stage
let workers: ServiceProcess[] = []

beforeEach(async () => {
  database = await createTestDatabase()
  stage = await setStage(database)
  workers = await startWorkers()
})
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()))
  await stage[Symbol.asyncDispose]()
  await database.drop()
})

/** Two processes beside the one of the stage. All three settle and roll up. */
const startWorkers = () => Promise.all([1, 2].map(() => stage.startBeside()))

/** Kills all processes, and the statements that they wait for, which PostgreSQL would carry to their end. */
async function killAll(): Promise<void> {
  for (const { child, exit } of workers) {
    child.kill('SIGKILL')
    await exit
  }
  await stage.kill()
  await cutSessions(stage.db)
}

async function restartAll(): Promise<void> {
  await lapseClaims(stage)
  await stage.restart()
  workers = await startWorkers()
}

async function deltas(): Promise<number> {
  const { rows } = await sql<{ count: number }>`SELECT count(*)::int AS count FROM statistics_deltas`.execute(stage.db)
  return rows[0]?.count ?? 0
}

/** A number that no advisory lock of the service has. */
const gate = 4_242

/** Has each statement that writes to a table wait at its end for as long as a test holds `gate`. */
async function holdAtEnd(table: string): Promise<void> {
  await sql`
    CREATE OR REPLACE FUNCTION pass_gate() RETURNS trigger LANGUAGE plpgsql AS
      ${sql.lit(`BEGIN PERFORM pg_advisory_xact_lock_shared(${gate}); RETURN NULL; END`)}
  `.execute(stage.db)
  await sql`
    CREATE TRIGGER pass_gate AFTER INSERT ON ${sql.table(table)} FOR EACH STATEMENT EXECUTE FUNCTION pass_gate()
  `.execute(stage.db)
}

/** Kills the processes when a statement with this text in it has done its work, and waits before it commits. */
async function killAtEndOf(text: string): Promise<void> {
  await using holder = await startHolder(stage.connectionString)
  await holder.run(`SELECT pg_advisory_xact_lock(${gate})`)
  await untilSomebodyWaits(stage.db, text)
  await killAll()
}

const times = rounds({ short: 1, long: 10 })

test.each([
  { doing: 'settle attempts', table: 'statistics_deltas', text: 'WITH gone AS' },
  { doing: 'roll up', table: 'statistics_days', text: 'DELETE FROM statistics_deltas' },
])(
  'figures are exact when three processes are killed while they $doing',
  within(2 * times),
  async ({ table, text }) => {
    await holdAtEnd(table)
    await using load = stage.startLoad()
    for (let time = 1; time <= times; time++) {
      await load.acknowledged(10)
      await killAtEndOf(text)
      await restartAll()
    }
    await load.acknowledged(10)
    await load.stop()
    expect(await stage.verdict()).toEqual([])
    await expect.poll(deltas).toBe(0)
    expect(await miscounted(stage.db)).toEqual([])
  },
)
