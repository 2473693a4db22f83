import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { cancelDeliveries } from '../../server/delivery/cancel.ts'
import { claimDue } from '../../server/delivery/claim.ts'
import { handBack } from '../../server/delivery/hand-back.ts'
import { settle } from '../../server/delivery/settle.ts'
import { freshRange, priorityOfSlow } from '../../server/queue/lanes.ts'
import { startEngine } from '../support/engine.ts'

/*
 * PostgreSQL plans by what it last knew of a table. When that was "no rows", as after an idle night, and
 * a flood comes, nothing may be read but what is claimed and settled.
 */

const flood = 10_000
const batch = 500

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

  /** Milliseconds for a batch, the best of three. */
  async function cost(): Promise<number> {
    const costs: number[] = []
    for (let turn = 0; turn < 3; turn++) {
      const began = performance.now()
      const { claims } = await claimDue(engine, freshRange, batch)
      expect(claims).toHaveLength(batch)
      const outcome = { kind: 'answered', startedAt: new Date(), durationMs: 1, status: 200, body: '' } as const
      await settle(
        engine,
        claims.map(({ delivery }, index) => ({
          delivery,
          outcome: { ...outcome, retryAfterSeconds: null },
          verdict: index < batch / 2 ? { kind: 'succeeded' } : { kind: 'retry', delaySeconds: 60, error: 'no' },
        })),
      )
      const { claims: others } = await claimDue(engine, freshRange, batch)
      await handBack(engine, others)
      const ids = others.map(({ delivery }) => delivery.id)
      await engine.queue.move(db, ids, priorityOfSlow(1))
      await inTransaction(db, (trx) => cancelDeliveries(trx, engine.queue, ids))
      costs.push(performance.now() - began)
    }
    return Math.min(...costs)
  }

  if (analyzed) await sql`ANALYZE`.execute(db)
  const knowing = await cost()
  for (const table of tables) {
    await sql`UPDATE pg_class SET reltuples = 0, relpages = 1000 WHERE oid = ${table}::regclass`.execute(db)
  }
  expect((await cost()) / knowing).toBeLessThan(8)

  async function tablesInUse(): Promise<string[]> {
    const { rows } = await sql<{ name: string }>`
      SELECT 'pgboss.' || table_name AS name FROM pgboss.queue WHERE name = 'deliveries'
      UNION ALL VALUES ('deliveries'), ('attempts'), ('events')
    `.execute(db)
    return rows.map(({ name }) => name)
  }
})
