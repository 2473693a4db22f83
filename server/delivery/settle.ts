import { sql } from 'kysely'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { priorityOf } from '../queue/lanes.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import type { Settlement } from './settlement.ts'
import { healthChanges, lockAffected, recordHealth } from './webhook-health.ts'

type Settled = { id: string; status: string; next_attempt_at: Date | null }

/**
 * Writes a batch of attempts down in one transaction: the attempts, the state of their deliveries,
 * their jobs gone, and the jobs of the next attempts. A settlement counts once: one whose delivery
 * another worker has carried on meanwhile changes nothing. A delivery canceled while it was in flight
 * keeps its attempt, and succeeded if the endpoint took it.
 */
export async function settle(
  { db, queue }: { db: Db; queue: Queue },
  settlements: readonly Settlement[],
): Promise<Settled[]> {
  // One order for all, so that two batches never wait for each other's rows.
  const batch = settlements.toSorted((a, b) => (a.delivery.id < b.delivery.id ? -1 : 1))
  return inTransaction(db, async (trx) => {
    const webhookStates = await lockAffected(trx, batch)
    const settled = await writeAttempts(trx, batch)
    await queue.remove(
      trx,
      settled.map(({ id }) => id),
    )
    const webhooks = new Map(batch.map(({ delivery }) => [delivery.id, delivery.webhook]))
    await queue.put(
      trx,
      settled.flatMap(({ id, status, next_attempt_at }) => {
        const webhook = webhooks.get(id)
        if (status !== 'pending' || next_attempt_at === null || webhook === undefined) return []
        return [{ deliveryId: id, priority: priorityOf(webhook, next_attempt_at), dueAt: next_attempt_at }]
      }),
    )
    await recordHealth(trx, queue, healthChanges(batch, webhookStates))
    return settled
  })
}

async function writeAttempts(trx: Trx, batch: readonly Settlement[]): Promise<Settled[]> {
  const answers = batch.map(({ outcome }) => (outcome.kind === 'answered' ? outcome : null))
  const { rows } = await sql<Settled>`
    WITH input AS (
      SELECT * FROM unnest(
        ${batch.map(({ delivery }) => delivery.id)}::text[],
        ${batch.map(({ delivery }) => delivery.attemptCount + 1)}::int[],
        ${batch.map(({ verdict }) => (verdict.kind === 'gone' ? 'failed' : verdict.kind))}::text[],
        ${batch.map(({ verdict }) => (verdict.kind === 'retry' ? verdict.delaySeconds : null))}::int[],
        ${batch.map(({ outcome }) => outcome.startedAt)}::timestamptz[],
        ${batch.map(({ outcome }) => Math.round(outcome.durationMs))}::int[],
        ${answers.map((answer) => answer?.status ?? null)}::int[],
        ${answers.map((answer) => answer?.body ?? null)}::text[],
        ${batch.map(({ verdict }) => (verdict.kind === 'succeeded' ? null : verdict.error))}::text[]
      ) AS i (id, number, verdict, delay_seconds, started_at, duration_ms, response_status, response_body, error)
    ), settled AS (
      UPDATE deliveries d SET
        attempt_count = i.number,
        schedule_position = d.schedule_position + 1,
        status = CASE
          WHEN i.verdict = 'succeeded' THEN 'succeeded'
          WHEN d.status = 'canceled' THEN 'canceled'
          WHEN i.verdict = 'retry' THEN 'pending'
          ELSE 'failed'
        END,
        -- Rounded up to the millisecond that is stored: a retry is never early.
        next_attempt_at = CASE WHEN i.verdict = 'retry' AND d.status = 'pending' THEN
          date_trunc('milliseconds', ${queueNow}) + make_interval(secs => i.delay_seconds + 0.001)
        END,
        completed_at = CASE
          WHEN i.verdict = 'retry' AND d.status = 'pending' THEN NULL
          WHEN d.status = 'canceled' AND i.verdict <> 'succeeded' THEN d.completed_at
          ELSE ${queueNow}
        END
      FROM input i
      WHERE d.id = i.id AND d.attempt_count = i.number - 1 AND d.status IN ('pending', 'canceled')
      RETURNING d.id, d.status, d.next_attempt_at
    ), logged AS (
      INSERT INTO attempts (delivery_id, number, started_at, duration_ms, response_status, response_body, error)
      SELECT i.id, i.number, i.started_at, i.duration_ms, i.response_status, i.response_body, i.error
      FROM input i JOIN settled s ON s.id = i.id
    )
    SELECT id, status, next_attempt_at FROM settled
  `.execute(trx)
  return rows
}
