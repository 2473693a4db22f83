import { sql } from 'kysely'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { priorityOf } from '../queue/lanes.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import { settleSuccesses } from './settle-successes.ts'
import type { Settlement } from './settlement.ts'
import type { Verdict } from './verdict.ts'
import { healthChanges, lockAffected, recordHealth } from './webhook-health.ts'

type Settled = { id: string; next_attempt_at: Date | null }

export type SettleMeans = { db: Db; queue: Queue }

/**
 * Writes a batch of attempts down: the attempts, the state of their deliveries, their jobs gone, and
 * the jobs of the next attempts. A settlement counts once: one whose delivery another worker has
 * carried on meanwhile changes nothing, so that a batch may be settled again when it failed half-way.
 * A delivery canceled while it was in flight keeps its attempt, and succeeded if the endpoint took it.
 */
export async function settle(means: SettleMeans, settlements: readonly Settlement[]): Promise<void> {
  // One order for all, so that two batches never wait for each other's rows.
  const batch = settlements.toSorted((a, b) => (a.delivery.id < b.delivery.id ? -1 : 1))
  const failures = batch.filter(isFailure)
  const { wereFailing } = await settleSuccesses(
    means,
    batch.filter((one) => !isFailure(one)),
  )
  if (failures.length > 0 || wereFailing) await settleFailures(means, batch, failures)
}

type Failure = Settlement & { verdict: Exclude<Verdict, { kind: 'succeeded' }> }

function isFailure(one: Settlement): one is Failure {
  return one.verdict.kind !== 'succeeded'
}

/** Writes down what failed of a batch, and what all of the batch says about the health of its webhooks. */
async function settleFailures(
  { db, queue }: SettleMeans,
  batch: readonly Settlement[],
  failures: readonly Failure[],
): Promise<void> {
  await inTransaction(db, async (trx) => {
    const webhookStates = await lockAffected(trx, batch)
    const settled = await writeFailures(trx, failures)
    await queue.remove(
      trx,
      settled.map(({ id }) => id),
    )
    const webhooks = new Map(failures.map(({ delivery }) => [delivery.id, delivery.webhook]))
    await queue.put(
      trx,
      settled.flatMap(({ id, next_attempt_at }) => {
        const webhook = webhooks.get(id)
        if (next_attempt_at === null || webhook === undefined) return []
        return [{ deliveryId: id, priority: priorityOf(webhook, next_attempt_at), dueAt: next_attempt_at }]
      }),
    )
    await recordHealth(trx, queue, healthChanges(batch, webhookStates))
  })
}

async function writeFailures(trx: Trx, failures: readonly Failure[]): Promise<Settled[]> {
  if (failures.length === 0) return []
  const ids = failures.map(({ delivery }) => delivery.id)
  const answers = failures.map(({ outcome }) => (outcome.kind === 'answered' ? outcome : null))
  const { rows } = await sql<Settled>`
    WITH input AS (
      SELECT * FROM unnest(
        ${ids}::text[],
        ${failures.map(({ delivery }) => delivery.attemptCount + 1)}::int[],
        ${failures.map(({ verdict }) => (verdict.kind === 'retry' ? verdict.delaySeconds : null))}::int[],
        ${failures.map(({ outcome }) => outcome.startedAt)}::timestamptz[],
        ${failures.map(({ outcome }) => Math.round(outcome.durationMs))}::int[],
        ${answers.map((answer) => answer?.status ?? null)}::int[],
        ${answers.map((answer) => answer?.body ?? null)}::text[],
        ${failures.map(({ verdict }) => verdict.error)}::text[]
      ) AS i (id, number, delay_seconds, started_at, duration_ms, response_status, response_body, error)
    ), settled AS (
      UPDATE deliveries d SET
        attempt_count = i.number,
        schedule_position = d.schedule_position + 1,
        status = CASE
          WHEN d.status = 'canceled' THEN 'canceled'
          WHEN i.delay_seconds IS NOT NULL THEN 'pending'
          ELSE 'failed'
        END,
        -- Rounded up to the millisecond that is stored: a retry is never early.
        next_attempt_at = CASE WHEN d.status = 'pending' THEN
          date_trunc('milliseconds', ${queueNow}) + make_interval(secs => i.delay_seconds + 0.001)
        END,
        completed_at = CASE
          WHEN d.status = 'canceled' THEN d.completed_at
          WHEN i.delay_seconds IS NULL THEN ${queueNow}
        END
      FROM input i
      -- Said twice: see settleSuccesses.
      WHERE d.id = i.id AND d.id = ANY(${ids}::text[]) AND d.attempt_count = i.number - 1
      RETURNING i.*, d.next_attempt_at
    ), logged AS (
      INSERT INTO attempts (delivery_id, number, started_at, duration_ms, response_status, response_body, error)
      SELECT id, number, started_at, duration_ms, response_status, response_body, error FROM settled
    )
    SELECT id, next_attempt_at FROM settled
  `.execute(trx)
  return rows
}
