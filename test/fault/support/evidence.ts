import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import type { Db } from '../../../server/database/connection.ts'
import { uuidOf } from '../../../server/shared/ids.ts'
import type { Ledger } from './ledger.ts'
import type { Recorder } from './recorder.ts'
import { type Evidence, judge } from './verdict.ts'

const pollMs = 50
const marked = z.object({ data: z.object({ email: z.string() }) })

export type Trial = {
  /** A look at the database that no fault cuts for long. */
  db: Db
  ledger: Ledger
  recorder: Recorder
}

/**
 * Waits until nothing is left to deliver, `patienceMs` at most, and then answers what is wrong: nothing,
 * when nothing was lost. What is stuck for that long is among it.
 */
export async function verdict(trial: Trial, { patienceMs = 60_000 }: { patienceMs?: number } = {}): Promise<string[]> {
  const deadline = performance.now() + patienceMs
  while (!(await isDone(trial.db)) && performance.now() < deadline) await delay(pollMs)
  return judge(await gather(trial))
}

/** Whether no event awaits its fan-out, and no delivery is to be made. */
export async function isDone(db: Db): Promise<boolean> {
  const { rows } = await sql<{ left: boolean }>`
    SELECT EXISTS (SELECT FROM outbox_rows) OR EXISTS (SELECT FROM deliveries WHERE status = 'pending') AS left
  `.execute(db)
  return rows[0]?.left === false
}

async function gather({ db, ledger, recorder }: Trial): Promise<Evidence> {
  const events = await db
    .selectFrom('events')
    .select(['id', 'account_id', 'type', 'body'])
    .where('sample', '=', false)
    .execute()
  const webhooks = await db.selectFrom('webhooks').select(['id', 'account_id', 'url', 'events']).execute()
  const outbox = await db.selectFrom('outbox_rows').select('event_id').execute()
  return {
    ledger,
    events: events.map(({ account_id: accountId, ...event }) => ({
      ...event,
      accountId,
      mark: marked.parse(JSON.parse(event.body)).data.email,
    })),
    webhooks: webhooks.map(({ id, account_id: accountId, url, events: types }) => ({
      id,
      accountId,
      path: new URL(url).pathname,
      types,
    })),
    deliveries: await deliveriesWithJobs(db),
    outbox: outbox.map((row) => row.event_id),
    arrivals: recorder.arrivals,
  }
}

async function deliveriesWithJobs(db: Db): Promise<Evidence['deliveries']> {
  // One transaction, one moment: between two a delivery could be settled.
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (trx) => {
      const rows = await trx
        .selectFrom('deliveries')
        .select(['id', 'webhook_id as webhookId', 'event_id as eventId', 'status'])
        .execute()
      const jobs = await sql<{ id: string }>`
        SELECT id FROM pgboss.job WHERE name = 'deliveries' AND state <= 'active'
      `.execute(trx)
      const queued = new Set(jobs.rows.map(({ id }) => id))
      return rows.map((row) => ({ ...row, hasJob: queued.has(uuidOf(row.id)) }))
    })
}
