import { sql } from 'kysely'
import { plainArray } from '../../database/arrays.ts'
import { type Db, type Handle, inTransaction } from '../../database/connection.ts'
import { executePrepared } from '../../database/prepared.ts'
import { type Queue, queueNow } from '../../queue/queue.ts'
import { uuidOf } from '../../shared/ids.ts'
import { countingAttempts } from '../../statistics/count-attempts.ts'
import { loggedAnswer } from '../attempt/exchange.ts'
import type { Verdict } from '../attempt/verdict.ts'
import type { DueDelivery } from '../load-deliveries.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Settlement } from './settlement-types.ts'
import { healthChanges, lockAffected, recordHealth } from './webhook-health.ts'

/** A delivery of a leased event as it is written: with the result of its attempt, or pending. */
export type FinishedDelivery = {
  delivery: DueDelivery
  /** `claimed`: it is pending, and this process holds the claim on its job. `queued`: its job waits to be claimed. */
  end: Settlement | 'claimed' | 'queued'
}

export type FinishedEvent = { event: LeasedEvent; deliveries: readonly FinishedDelivery[] }

/**
 * Writes the deliveries of leased events and removes the events from the outbox, in one transaction. An event that is
 * no longer leased to this process is skipped. Returns the ids of the events that were written.
 */
export async function finishEvents(
  { db, queue }: { db: Db; queue: Queue },
  lease: string,
  events: readonly FinishedEvent[],
): Promise<Set<string>> {
  if (events.some(hasFailure)) {
    return inTransaction(db, async (trx) => {
      // Webhooks are locked first: see lock-order.ts.
      const states = await lockAffected(trx, events.flatMap(settlementsOf), webhooksOfUnended(events))
      const { written } = await write({ handle: trx, queue }, lease, events)
      await recordHealth(trx, queue, healthChanges(writtenOf(events, written), states))
      return written
    })
  }
  const { written, wereFailing } = await write({ handle: db, queue }, lease, events)
  if (wereFailing) {
    await inTransaction(db, async (trx) => {
      const states = await lockAffected(trx, events.flatMap(settlementsOf))
      await recordHealth(trx, queue, healthChanges(writtenOf(events, written), states))
    })
  }
  return written
}

/** Returns the webhooks that `write` locks because one of their deliveries becomes pending without an attempt. */
function webhooksOfUnended(events: readonly FinishedEvent[]): string[] {
  const unended = events.flatMap(({ deliveries }) => deliveries.filter(({ end }) => typeof end === 'string'))
  return [...new Set(unended.map(({ delivery }) => delivery.webhookId))]
}

function hasFailure({ deliveries }: FinishedEvent): boolean {
  return deliveries.some(({ end }) => typeof end !== 'string' && end.verdict.kind !== 'succeeded')
}

function settlementsOf({ deliveries }: FinishedEvent): Settlement[] {
  return deliveries.flatMap(({ end }) => (typeof end === 'string' ? [] : [end]))
}

function writtenOf(events: readonly FinishedEvent[], written: ReadonlySet<string>): Settlement[] {
  return events.filter(({ event }) => written.has(event.id)).flatMap(settlementsOf)
}

const statusAfter = {
  succeeded: 'succeeded',
  retry: 'pending',
  failed: 'failed',
  gone: 'failed',
} as const satisfies Record<Verdict['kind'], string>

/** Returns the values of one row of the statement. Without an attempt, those of the attempt are null. */
function toRow(event: LeasedEvent, { delivery, end }: FinishedDelivery) {
  const attempted = typeof end === 'string' ? null : end
  const verdict = attempted?.verdict
  return {
    event,
    delivery,
    isClaimed: end === 'claimed',
    status: verdict === undefined ? 'pending' : statusAfter[verdict.kind],
    delaySeconds: verdict?.kind === 'retry' ? verdict.delaySeconds : null,
    error: verdict === undefined || verdict.kind === 'succeeded' ? null : verdict.error,
    outcome: attempted?.outcome ?? null,
    answer: attempted === null ? null : loggedAnswer(attempted.outcome),
  }
}

async function write(
  { handle, queue }: { handle: Handle; queue: Queue },
  lease: string,
  events: readonly FinishedEvent[],
): Promise<{ written: Set<string>; wereFailing: boolean }> {
  const rows = events.flatMap(({ event, deliveries }) => deliveries.map((one) => toRow(event, one)))
  const webhookIds = [...new Set(rows.map(({ delivery }) => delivery.webhookId))]
  const pending = rows.filter(({ status }) => status === 'pending')
  const pendingFor = [...new Set(pending.map(({ delivery }) => delivery.webhookId))]
  const statement = sql<{ written: string[] | null; were_failing: boolean }>`
    WITH gone AS (
      DELETE FROM outbox_rows
      WHERE event_id = ANY(${plainArray(events.map(({ event }) => event.id))}::text[]) AND lease = ${lease}::uuid
      RETURNING event_id
    ), open AS (
      -- A transaction that disables or deletes a webhook locks it and cancels its pending deliveries. With this lock
      -- that happens either before this statement, which then writes no pending delivery, or after it.
      SELECT id FROM webhooks WHERE id = ANY(${pendingFor}::text[]) AND status = 'enabled' ORDER BY id FOR SHARE
    ), input AS MATERIALIZED (
      SELECT i.*, CASE WHEN i.status = 'pending' AND i.webhook_id IN (SELECT id FROM open) THEN
        -- Rounded up to the millisecond that is stored: a retry is never early.
        date_trunc('milliseconds', p.now) + make_interval(secs => coalesce(i.delay_seconds + 0.001, 0))
      END AS due_at, p.now
      FROM (SELECT ${queueNow} AS now OFFSET 0) p, unnest(
        ${plainArray(rows.map(({ delivery }) => delivery.id))}::text[],
        ${plainArray(rows.map(({ delivery, status }) => (status === 'pending' ? uuidOf(delivery.id) : null)))}::uuid[],
        ${plainArray(rows.map(({ delivery }) => delivery.accountId))}::text[],
        ${plainArray(rows.map(({ delivery }) => delivery.webhookId))}::text[],
        ${plainArray(rows.map(({ delivery }) => delivery.webhook.flow))}::int[],
        ${plainArray(rows.map(({ event }) => event.id))}::text[],
        ${plainArray(rows.map(({ event }) => event.type))}::text[],
        ${plainArray(rows.map(({ event }) => event.createdAt.toISOString()))}::timestamptz[],
        ${plainArray(rows.map(({ status }) => status))}::text[],
        ${plainArray(rows.map(({ isClaimed }) => String(isClaimed)))}::bool[],
        ${plainArray(rows.map(({ delaySeconds }) => delaySeconds))}::int[],
        ${plainArray(rows.map(({ outcome }) => outcome?.startedAt.toISOString() ?? null))}::timestamptz[],
        ${plainArray(rows.map(({ outcome }) => (outcome === null ? null : Math.round(outcome.durationMs))))}::int[],
        ${plainArray(rows.map(({ answer }) => answer?.status ?? null))}::int[],
        ${rows.map(({ answer }) => answer?.body ?? null)}::text[],
        ${rows.map(({ error }) => error)}::text[],
        ${plainArray(rows.map(({ outcome }) => String(outcome?.reposted ?? false)))}::bool[],
        ${plainArray(rows.map(({ delivery }) => delivery.webhook.version))}::int[],
        ${plainArray(rows.map(({ delivery }) => delivery.webhook.mode))}::text[]
      ) AS i (
        id, job_id, account_id, webhook_id, flow, event_id, event_type, created_at, status, is_claimed, delay_seconds,
        started_at, duration_ms, response_status, response_body, error, reposted, webhook_version, webhook_mode
      )
      WHERE i.event_id IN (SELECT event_id FROM gone)
    ), made AS (
      INSERT INTO deliveries (
        id, account_id, webhook_id, event_id, event_type, created_at, status, attempt_count, schedule_position,
        next_attempt_at, completed_at, queued_at, claimed_at
      )
      SELECT id, account_id, webhook_id, event_id, event_type, created_at,
        CASE WHEN status = 'pending' AND due_at IS NULL THEN 'canceled' ELSE status END, (started_at IS NOT NULL)::int,
        (started_at IS NOT NULL)::int, due_at, CASE WHEN due_at IS NULL THEN now END,
        -- Deliveries of leased events were in hand from the start, so they were due at once.
        LEAST(created_at, started_at), CASE WHEN started_at IS NOT NULL THEN LEAST(created_at, started_at) END
      FROM input
    ), tried AS (
      INSERT INTO attempts
        (delivery_id, number, started_at, duration_ms, response_status, response_body, error, reposted, webhook_version)
      SELECT id, 1, started_at, duration_ms, response_status, response_body, error, reposted, webhook_version
      FROM input WHERE started_at IS NOT NULL
    ), counted AS (
      ${countingAttempts(sql`
        SELECT *, error IS NULL AS is_success, nullif(status, 'pending') AS ended FROM input WHERE started_at IS NOT NULL
      `)}
    ), jobs AS (
      ${queue.flows.insertion(sql`SELECT job_id AS id, flow, due_at, is_claimed FROM input WHERE due_at IS NOT NULL`)}
    )
    -- Null, as nearly always: all of them.
    SELECT CASE WHEN (SELECT count(*) FROM gone) < ${events.length} THEN ARRAY(SELECT event_id FROM gone) END AS written,
    EXISTS (
      SELECT FROM webhooks WHERE id = ANY(${webhookIds}::text[]) AND failing_since IS NOT NULL
    ) AS were_failing
  `
  const [row] = await executePrepared(handle, { name: 'finish_events' }, statement)
  const written = row?.written ?? events.map(({ event }) => event.id)
  return { written: new Set(written), wereFailing: row?.were_failing === true }
}
