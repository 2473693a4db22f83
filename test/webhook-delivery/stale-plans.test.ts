import { sql } from 'kysely'
import { expect, test } from 'vitest'
import type { Db } from '../../server/database/connection.ts'
import { type Engine, hasSucceeded, startEngine } from '../support/engine.ts'
import { startReceiver } from '../support/receiver.ts'

/*
 * A session keeps the plans of prepared statements and of foreign keys until it learns that a table was
 * analyzed. Those it made on the first day, when to read a table through was cheapest, must not be what it
 * meets a flood with.
 */

const large = 20_000
/** More than the pool has connections. A plan is kept from the sixth time on. */
const enoughToKeepPlans = 60

test('a session that planned when the tables were small reads no more when they are large', async () => {
  await using receiver = await startReceiver()
  await using engine = await startEngine()
  const { db } = engine
  const webhookId = await engine.addWebhook(receiver.url)
  await deliver(engine, webhookId, 5)
  const tables = ['events', 'deliveries', 'attempts', 'outbox_rows']
  for (const table of tables) await sql`ALTER TABLE ${sql.table(table)} SET (autovacuum_enabled = off)`.execute(db)
  await sql`ANALYZE`.execute(db)
  await deliver(engine, webhookId, enoughToKeepPlans)
  await addOldDeliveries(engine, await engine.addWebhook('http://127.0.0.1:9/', []))

  const before = await rowsReadThrough(db)
  await deliver(engine, webhookId, 20)
  const after = await rowsReadThrough(db)

  for (const table of tables) expect.soft((after.get(table) ?? 0) - (before.get(table) ?? 0), table).toBeLessThan(large)
})

/** Has events delivered, one after the other. */
async function deliver(engine: Engine, webhookId: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const [eventId] = await engine.emit()
    await engine.someDeliveriesOf(webhookId, 1, (row) => row.event_id === eventId && hasSucceeded(row))
  }
}

async function addOldDeliveries({ db, accountId }: Engine, webhookId: string): Promise<void> {
  const at = new Date('2026-02-01T00:00:00.000Z')
  await sql`
    INSERT INTO events (id, account_id, type, body, created_at)
    SELECT 'evt_' || n, ${accountId}, 'contact.deleted', '{}', ${at} FROM generate_series(1, ${large}) n
  `.execute(db)
  await sql`
    INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, status, attempt_count, created_at, completed_at)
    SELECT 'dlv_' || n, ${accountId}, ${webhookId}, 'evt_' || n, 'contact.deleted', 'succeeded', 1, ${at}, ${at}
    FROM generate_series(1, ${large}) n
  `.execute(db)
}

/** Rows read by reading tables through, by table, with what every session of the pool counted. */
async function rowsReadThrough(db: Db): Promise<Map<string, number>> {
  const sessions = 10
  const all = Promise.withResolvers<void>()
  let held = 0
  const flush = () =>
    db.connection().execute(async (connection) => {
      await sql`SELECT pg_stat_force_next_flush()`.execute(connection)
      held += 1
      if (held === sessions) all.resolve()
      await all.promise
    })
  await Promise.all(Array.from({ length: sessions }, flush))
  const { rows } = await sql<{ name: string; count: number }>`
    SELECT relname AS name, seq_tup_read::float AS count FROM pg_stat_user_tables WHERE schemaname = 'public'
  `.execute(db)
  return new Map(rows.map(({ name, count }) => [name, count]))
}
