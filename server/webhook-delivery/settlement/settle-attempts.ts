import { sql } from 'kysely'
import { type Db, inTransaction, type Trx } from '../../database/connection.ts'
import { type Queue, queueNow } from '../../queue/queue.ts'
import { uuidOf } from '../../shared/ids.ts'
import { countingAttempts } from '../../statistics/count-attempts.ts'
import { loggedAnswer } from '../attempt/exchange.ts'
import type { Verdict } from '../attempt/verdict.ts'
import { lockedDeliveries } from '../lock-order.ts'
import { countedMode, isUnrecorded, settleSuccesses, turnTimes } from './settle-successes.ts'
import type { Settlement } from './settlement-types.ts'
import { healthChanges, lockAffected, recordHealth } from './webhook-health.ts'

type Settled = { id: string; next_attempt_at: Date | null }

export type SettleMeans = { db: Db; queue: Queue }

/**
 * Writes a batch of attempts: inserts the attempts, updates their deliveries, removes their jobs and inserts the jobs
 * of the next attempts. A settlement counts once: it changes nothing if another worker has attempted the delivery
 * meanwhile. So a batch that failed half-way may be settled again.
 *
 * A delivery that was canceled in flight keeps its attempt, and becomes `succeeded` if the endpoint accepted it. A
 * delivery that was canceled and sent again keeps the attempt too, and the new run goes on.
 */
export async function settle(means: SettleMeans, settlements: readonly Settlement[]): Promise<void> {
  // All batches use the same order, so that two of them never deadlock.
  const sorted = settlements.toSorted((a, b) => (a.delivery.id < b.delivery.id ? -1 : 1))
  // A statement can update a row only once, and attempts of two runs of a delivery can be in the same batch.
  const batch = sorted.filter(({ delivery }, index) => delivery.id !== sorted[index - 1]?.delivery.id)
  const again = sorted.filter(({ delivery }, index) => delivery.id === sorted[index - 1]?.delivery.id)
  const failures = batch.filter(isFailure)
  const { wereFailing } = await settleSuccesses(
    means,
    batch.filter((one) => !isFailure(one)),
  )
  if (failures.length > 0 || wereFailing) await settleFailures(means, batch, failures)
  if (again.length > 0) await settle(means, again)
}

type FailedAttempt = Settlement & { verdict: Exclude<Verdict, { kind: 'succeeded' }> }

function isFailure(one: Settlement): one is FailedAttempt {
  return one.verdict.kind !== 'succeeded'
}

/** Writes the failures of a batch, and the health of the webhooks of the whole batch. */
async function settleFailures(
  { db, queue }: SettleMeans,
  batch: readonly Settlement[],
  failures: readonly FailedAttempt[],
): Promise<void> {
  await inTransaction(db, async (trx) => {
    const webhookStates = await lockAffected(trx, batch)
    const settled = await writeFailures(trx, queue, failures)
    await queue.remove(
      trx,
      settled.map(({ id }) => id),
    )
    const flows = new Map(failures.map(({ delivery }) => [delivery.id, delivery.webhook.flow]))
    await queue.flows.put(
      trx,
      settled.flatMap(({ id, next_attempt_at: dueAt }) => {
        const flow = flows.get(id)
        return dueAt === null || flow === undefined ? [] : [{ deliveryId: id, flow, dueAt }]
      }),
    )
    await recordHealth(trx, queue, healthChanges(batch, webhookStates))
  })
}

async function writeFailures(trx: Trx, queue: Queue, failures: readonly FailedAttempt[]): Promise<Settled[]> {
  if (failures.length === 0) return []
  const ids = failures.map(({ delivery }) => delivery.id)
  const answers = failures.map(({ outcome }) => loggedAnswer(outcome))
  const { rows } = await sql<Settled>`
    WITH input AS (
      SELECT * FROM unnest(
        ${ids}::text[],
        ${ids.map(uuidOf)}::uuid[],
        ${failures.map(({ delivery }) => delivery.run)}::int[],
        ${failures.map(({ delivery }) => delivery.schedulePosition)}::int[],
        ${failures.map(({ verdict }) => (verdict.kind === 'retry' ? verdict.delaySeconds : null))}::int[],
        ${failures.map(({ outcome }) => outcome.startedAt)}::timestamptz[],
        ${failures.map(({ outcome }) => Math.round(outcome.durationMs))}::int[],
        ${answers.map((answer) => answer?.status ?? null)}::int[],
        ${answers.map((answer) => answer?.body ?? null)}::text[],
        ${failures.map(({ verdict }) => verdict.error)}::text[],
        ${failures.map(({ outcome }) => outcome.reposted)}::bool[],
        ${failures.map(({ delivery }) => delivery.webhook.version)}::int[],
        ${failures.map(countedMode)}::text[]
      ) AS i (id, job_id, run, position, delay_seconds, started_at, duration_ms, response_status, response_body, error,
        reposted, webhook_version, webhook_mode)
    ), settled AS (
      UPDATE deliveries d SET
        attempt_count = d.attempt_count + 1,
        schedule_position = CASE WHEN d.run = i.run THEN d.schedule_position + 1 ELSE d.schedule_position END,
        status = CASE
          WHEN d.status = 'canceled' OR d.run <> i.run THEN d.status
          WHEN i.delay_seconds IS NOT NULL THEN 'pending'
          ELSE 'failed'
        END,
        -- Rounded up to the millisecond that is stored: a retry is never early.
        next_attempt_at = CASE WHEN d.run <> i.run THEN d.next_attempt_at WHEN d.status = 'pending' THEN
          date_trunc('milliseconds', ${queueNow}) + make_interval(secs => i.delay_seconds + 0.001)
        END,
        completed_at = CASE
          WHEN d.status = 'canceled' OR d.run <> i.run THEN d.completed_at
          WHEN i.delay_seconds IS NULL THEN ${queueNow}
        END,
        ${turnTimes(queue)}
      FROM input i
      WHERE d.id = i.id AND d.id = ANY(ARRAY(${lockedDeliveries(sql`${ids}`)})) AND ${isUnrecorded}
      RETURNING i.*, d.account_id, d.webhook_id, d.attempt_count AS number, d.next_attempt_at, d.run = i.run AS is_current,
        CASE WHEN d.run = i.run AND d.status = 'failed' THEN d.status END AS ended
    ), logged AS (
      INSERT INTO attempts
        (delivery_id, number, started_at, duration_ms, response_status, response_body, error, reposted, webhook_version)
      SELECT id, number, started_at, duration_ms, response_status, response_body, error, reposted, webhook_version
      FROM settled
    ), counted AS (
      ${countingAttempts(sql`SELECT *, false AS is_success FROM settled`)}
    )
    SELECT id, next_attempt_at FROM settled WHERE is_current
  `.execute(trx)
  return rows
}
