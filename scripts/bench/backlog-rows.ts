import { sql } from 'kysely'
import { inTransaction, type Trx } from '../../server/database/connection.ts'
import { firstFlow } from '../../server/queue/flow-jobs.ts'
import { startQueue } from '../../server/queue/queue.ts'
import { newId, uuidOf } from '../../server/shared/ids.ts'
import type { World } from './lab.ts'
import { usualEvent } from './seed.ts'

/*
 * Writes many waiting deliveries as the service would have: their events, deliveries, attempts so far and jobs.
 */

/** Deliveries that wait for a retry, or for their first attempt. */
export type Backlog = {
  count: number
  /** The webhooks of the deliveries, in rotation. */
  webhooks: readonly { accountId: string; webhookId: string }[]
  /** Creation of the first delivery. */
  firstAt: Date
  /** Milliseconds between deliveries. Each has a creation time of its own. */
  everyMs: number
  /** Returns the time of the retry of a delivery that was created at `at` and failed once. Null: never tried. */
  retryAt: ((at: Date) => Date) | null
}

const chunkSize = 5_000

/** Writes a backlog in transactions of 5,000 deliveries. Does not wake the workers. */
export async function writeBacklog(world: World, backlog: Backlog, progress: (text: string) => void): Promise<void> {
  const columns = await jobColumns(world)
  for (let from = 0; from < backlog.count; from += chunkSize) {
    const length = Math.min(chunkSize, backlog.count - from)
    await inTransaction(world.db, (chunk) => writeChunk(chunk, columns, { ...backlog, from, length }))
    if ((from / chunkSize) % 20 === 19) progress(`${(from + length).toLocaleString('en')} deliveries prepared`)
  }
}

/**
 * Moves all delivery jobs from the queue to another table, in this database and its later copies. The deliveries
 * remain, but no worker finds them.
 */
export async function setJobsAside(world: World): Promise<void> {
  const { table } = await jobColumns(world)
  await sql`CREATE TABLE jobs_aside AS SELECT * FROM ${sql.table(`pgboss.${table}`)}`.execute(world.db)
  await sql`TRUNCATE ${sql.table(`pgboss.${table}`)}`.execute(world.db)
}

/** Moves the jobs back to the queue. */
export async function putJobsBack(world: World, trx: Trx): Promise<void> {
  const { table, shared } = await jobColumns(world)
  const columns = sql.join(
    ['id', 'priority', 'start_after', 'created_on', 'keep_until', ...shared].map((name) => sql.ref(name)),
  )
  await sql`
    INSERT INTO ${sql.table(`pgboss.${table}`)} (${columns}) SELECT ${columns} FROM jobs_aside
  `.execute(trx)
}

type JobColumns = {
  table: string
  /** The columns with the same value in all jobs of the queue. */
  shared: readonly string[]
}

/** Writes one job through the queue of the service, and keeps its row in the table `job_example` as a template. */
async function jobColumns({ connectionString, db }: World): Promise<JobColumns> {
  const queue = await startQueue({ connectionString, works: false, onError: () => undefined })
  const exampleId = newId('delivery', new Date())
  await inTransaction(db, (trx) =>
    queue.flows.put(trx, [{ deliveryId: exampleId, flow: firstFlow, dueAt: new Date(0) }]),
  )
  await queue.stop()
  const { rows: tables } = await sql<{ table_name: string }>`
    SELECT table_name FROM pgboss.queue WHERE name = 'deliveries'
  `.execute(db)
  const table = tables[0]?.table_name
  if (table === undefined) throw new Error('the queue of deliveries has no table')
  const { rows } = await sql<{ column_name: string }>`
    SELECT column_name FROM information_schema.columns
    WHERE table_schema = 'pgboss' AND table_name = ${table} AND is_generated = 'NEVER'
      AND column_name NOT IN ('id', 'priority', 'start_after', 'created_on', 'keep_until')
  `.execute(db)
  await sql`CREATE TABLE IF NOT EXISTS job_example AS SELECT * FROM ${sql.table(`pgboss.${table}`)}
    WHERE id = ${uuidOf(exampleId)}::uuid`.execute(db)
  await sql`DELETE FROM ${sql.table(`pgboss.${table}`)} WHERE id = ${uuidOf(exampleId)}::uuid`.execute(db)
  return { table, shared: rows.map(({ column_name }) => column_name) }
}

/** A part of a backlog: `length` deliveries after the first `from`. */
type Chunk = Backlog & { from: number; length: number }

type Row = {
  id: string
  eventId: string
  accountId: string
  webhookId: string
  at: Date
  dueAt: Date | null
}

async function writeChunk(trx: Trx, { table, shared }: JobColumns, { from, length, ...backlog }: Chunk): Promise<void> {
  const { webhooks, firstAt, everyMs, retryAt } = backlog
  const rows: Row[] = Array.from({ length }, (_, index) => {
    const at = new Date(firstAt.getTime() + (from + index) * everyMs)
    const webhook = webhooks[(from + index) % webhooks.length]
    if (webhook === undefined) throw new Error('the backlog has no webhooks')
    const dueAt = retryAt?.(at) ?? null
    return { id: newId('delivery', at), eventId: newId('event', at), ...webhook, at, dueAt }
  })
  const ids = rows.map(({ id }) => id)
  const eventIds = rows.map(({ eventId }) => eventId)
  const accountIds = rows.map(({ accountId }) => accountId)
  const times = rows.map(({ at }) => at)
  const dues = rows.map(({ dueAt }) => dueAt)
  const attempts = retryAt === null ? 0 : 1

  await sql`
    INSERT INTO events (id, account_id, type, body, created_at)
    SELECT id, account_id, ${usualEvent}, json_build_object('id', id, 'type', ${usualEvent}::text, 'created', at,
      'data', json_build_object('subscriberId', replace(id, 'evt', 'sub'), 'email', id || '@example.com',
      'status', 'active'))::text, at
    FROM unnest(${eventIds}::text[], ${accountIds}::text[], ${times}::timestamptz[]) AS e (id, account_id, at)
  `.execute(trx)
  await sql`
    INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, attempt_count, schedule_position,
      next_attempt_at, created_at)
    SELECT id, account_id, webhook_id, event_id, ${usualEvent}, ${attempts}, ${attempts}, coalesce(due, at), at
    FROM unnest(${ids}::text[], ${accountIds}::text[], ${rows.map(({ webhookId }) => webhookId)}::text[],
      ${eventIds}::text[], ${dues}::timestamptz[], ${times}::timestamptz[])
      AS d (id, account_id, webhook_id, event_id, due, at)
  `.execute(trx)
  if (attempts > 0) {
    await sql`
      INSERT INTO attempts (delivery_id, number, started_at, duration_ms, response_status, response_body, error)
      SELECT id, 1, at, 12, 500, 'no', 'The endpoint answered with the status 500.'
      FROM unnest(${ids}::text[], ${times}::timestamptz[]) AS a (id, at)
    `.execute(trx)
  }
  const columns = sql.join(shared.map((name) => sql.ref(name)))
  await sql`
    INSERT INTO ${sql.table(`pgboss.${table}`)} (id, priority, start_after, created_on, keep_until, ${columns})
    SELECT j.id, -w.flow, coalesce(j.due, j.at), coalesce(j.due, j.at), coalesce(j.due, j.at) + interval '1 year',
      ${sql.join(shared.map((name) => sql.ref(`x.${name}`)))}
    FROM job_example x, unnest(${ids.map(uuidOf)}::uuid[], ${rows.map(({ webhookId }) => webhookId)}::text[],
      ${dues}::timestamptz[], ${times}::timestamptz[]) AS j (id, webhook_id, due, at)
    JOIN webhooks w ON w.id = j.webhook_id
  `.execute(trx)
}
