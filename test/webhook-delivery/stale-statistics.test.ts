import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { type Db, inTransaction } from '../../server/database/connection.ts'
import { startQueue } from '../../server/queue/queue.ts'
import { cancelDeliveries } from '../../server/webhook-delivery/cancel.ts'
import { claimDue } from '../../server/webhook-delivery/scheduling/claim.ts'
import { handBack } from '../../server/webhook-delivery/scheduling/hand-back.ts'
import { settle } from '../../server/webhook-delivery/settlement/settle-attempts.ts'
import { connectTester } from '../fault/support/sessions.ts'
import { type Engine, startEngine } from '../support/engine.ts'
import { dueFlows } from '../support/flows.ts'

/*
 * PostgreSQL plans by what it last knew of a table. When that was "no rows", as after an idle night, and
 * a flood comes, nothing may be read but what is claimed and settled.
 */

const flood = 10_000
const batch = 500
const batches = 3

test.each([
  ['nothing else is known', false],
  ['what is known is of other times', true],
])('what is done to a batch reads no more when tables are taken to be empty and %s', async (_, analyzed) => {
  await using engine = await startEngine()
  const { db } = engine
  await engine.workers.stop(1_000)
  await engine.addWebhook('http://127.0.0.1:9/')
  await engine.emit(flood)
  await engine.fanOut()
  const tables = await tablesInUse()
  for (const table of tables) await sql`ALTER TABLE ${sql.raw(table)} SET (autovacuum_enabled = off)`.execute(db)

  /** The rows that are read for some batches, in sessions of their own: these tell all they counted when they end. */
  async function rowsRead(): Promise<number> {
    const before = await countersOf(db, tables)
    const sessions = await sessionsOn(db)
    {
      await using ending = new AsyncDisposableStack()
      const queue = await startQueue({
        connectionString: engine.connectionString,
        works: false,
        onError(error) {
          throw error
        },
      })
      ending.defer(() => queue.stop())
      const own = connectTester(engine.connectionString)
      ending.defer(() => own.destroy())
      for (let turn = 0; turn < batches; turn++) await workOn({ ...engine, db: own, queue })
    }
    await expect.poll(async () => (await sessionsOn(db)).filter((pid) => !sessions.includes(pid))).toEqual([])
    return (await countersOf(db, tables)) - before
  }

  if (analyzed) await sql`ANALYZE`.execute(db)
  const knowing = await rowsRead()
  for (const table of tables) {
    await sql`UPDATE pg_class SET reltuples = 0, relpages = 1000 WHERE oid = ${table}::regclass`.execute(db)
  }
  // For each batch what waits may be read through once or twice. A plan that does so for each row reads millions.
  expect((await rowsRead()) - knowing).toBeLessThan(batches * 2 * flood)

  async function tablesInUse(): Promise<string[]> {
    const { rows } = await sql<{ name: string }>`
      SELECT 'pgboss.' || table_name AS name FROM pgboss.queue WHERE name = 'deliveries'
      UNION ALL VALUES ('deliveries'), ('attempts'), ('events')
    `.execute(db)
    return rows.map(({ name }) => name)
  }
})

async function workOn(engine: Pick<Engine, 'db' | 'queue'>): Promise<void> {
  const { db, queue } = engine
  const { claims } = await claimDue(engine, await dueFlows(engine.queue, batch))
  expect(claims).toHaveLength(batch)
  const outcome = {
    kind: 'answered',
    startedAt: new Date(),
    durationMs: 1,
    status: 200,
    body: '',
    reposted: false,
  } as const
  await settle(
    engine,
    claims.map(({ delivery }, index) => ({
      delivery,
      outcome: { ...outcome, retryAfterSeconds: null },
      verdict: index < batch / 2 ? { kind: 'succeeded' } : { kind: 'retry', delaySeconds: 60, error: 'no' },
    })),
  )
  const { claims: others } = await claimDue(engine, await dueFlows(engine.queue, batch))
  await handBack(engine, others)
  const ids = others.map(({ delivery }) => delivery.id)
  await inTransaction(db, (trx) => cancelDeliveries(trx, queue, ids))
}

/** Rows read from tables since the server started, with what every session that has ended counted. */
async function countersOf(db: Db, tables: readonly string[]): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::float AS count FROM pg_stat_all_tables
    WHERE relid = ANY(${tables}::regclass[])
  `.execute(db)
  return rows[0]?.count ?? Number.NaN
}

async function sessionsOn(db: Db): Promise<number[]> {
  const { rows } = await sql<{ pid: number }>`
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
  `.execute(db)
  return rows.map(({ pid }) => pid)
}
