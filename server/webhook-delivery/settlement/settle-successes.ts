import { sql } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'
import { plainArray } from '../../database/arrays.ts'
import type { Db } from '../../database/connection.ts'
import { type Queue, queueNow } from '../../queue/queue.ts'
import { uuidOf } from '../../shared/ids.ts'
import { countingAttempts } from '../../statistics/count-attempts.ts'
import { loggedAnswer } from '../attempt/exchange.ts'
import { dueSince } from '../due-since.ts'
import { lockedDeliveries } from '../lock-order.ts'
import type { Settlement } from './settlement-types.ts'

/**
 * Matches the deliveries `d` that an attempt `i` is recorded for. `run` and `position` identify the attempt, so that it
 * is recorded once, however often it is settled. If the delivery was canceled and sent again meanwhile, the attempt
 * belongs to an earlier run: it is logged, and the delivery keeps its state and its job.
 */
export const isUnrecorded = sql`
  CASE WHEN d.run = i.run THEN d.schedule_position = i.position
  ELSE d.run > i.run AND NOT EXISTS (
    SELECT FROM attempts a WHERE a.delivery_id = d.id AND a.started_at = i.started_at
  ) END
`

/**
 * Returns the assignments that record when the delivery `d` of an attempt `i` was due and claimed. Both become NULL if
 * it was canceled in flight: its times are not known any more.
 */
export function turnTimes(queue: Queue) {
  return sql`
    queued_at = CASE WHEN d.run <> i.run THEN d.queued_at
      WHEN d.next_attempt_at IS NOT NULL THEN LEAST(${dueSince('d')}, i.started_at) END,
    -- The earlier time: the clocks of processes differ, and the claim of a delivery that began in hand is recorded
    -- later.
    claimed_at = CASE WHEN d.run <> i.run THEN d.claimed_at
      WHEN d.next_attempt_at IS NOT NULL THEN LEAST(${queue.lastClaim(sql`i.job_id`)}, i.started_at) END
  `
}

/** Returns the mode in which an attempt is counted for statistics. Null: it sent a sample, which is not counted. */
export function countedMode({ delivery }: Settlement): Mode | null {
  return delivery.sample ? null : delivery.webhook.mode
}

/**
 * Records successes in one statement: inserts the attempts, updates their deliveries, removes their jobs and counts them
 * for statistics. A success changes nothing if another worker has attempted the delivery meanwhile. Returns whether one
 * of the webhooks was failing; the caller must then end its run of failures.
 */
export async function settleSuccesses(
  { db, queue }: { db: Db; queue: Queue },
  settlements: readonly Settlement[],
): Promise<{ wereFailing: boolean }> {
  if (settlements.length === 0) return { wereFailing: false }
  const webhookIds = [...new Set(settlements.map(({ delivery }) => delivery.webhookId))]
  const ids = settlements.map(({ delivery }) => delivery.id)
  const idArray = sql`${plainArray(ids)}`
  const answers = settlements.map(({ outcome }) => loggedAnswer(outcome))
  const { rows } = await sql<{ were_failing: boolean }>`
    WITH input AS (
      SELECT * FROM unnest(
        ${idArray}::text[],
        ${plainArray(ids.map(uuidOf))}::uuid[],
        ${plainArray(settlements.map(({ delivery }) => delivery.run))}::int[],
        ${plainArray(settlements.map(({ delivery }) => delivery.schedulePosition))}::int[],
        ${plainArray(settlements.map(({ outcome }) => outcome.startedAt.toISOString()))}::timestamptz[],
        ${plainArray(settlements.map(({ outcome }) => Math.round(outcome.durationMs)))}::int[],
        ${plainArray(answers.map((answer) => answer?.status ?? null))}::int[],
        ${answers.map((answer) => answer?.body ?? null)}::text[],
        ${plainArray(settlements.map(({ outcome }) => String(outcome.reposted)))}::bool[],
        ${plainArray(settlements.map(({ delivery }) => delivery.webhook.version))}::int[],
        ${plainArray(settlements.map(countedMode))}::text[]
      ) AS i (id, job_id, run, position, started_at, duration_ms, response_status, response_body, reposted,
        webhook_version, webhook_mode)
    ), settled AS (
      UPDATE deliveries d SET
        attempt_count = d.attempt_count + 1,
        schedule_position = CASE WHEN d.run = i.run THEN d.schedule_position + 1 ELSE d.schedule_position END,
        status = CASE WHEN d.run = i.run THEN 'succeeded' ELSE d.status END,
        next_attempt_at = CASE WHEN d.run = i.run THEN NULL ELSE d.next_attempt_at END,
        completed_at = CASE WHEN d.run = i.run THEN ${queueNow} ELSE d.completed_at END,
        ${turnTimes(queue)}
      FROM input i
      WHERE d.id = i.id AND d.id = ANY(ARRAY(${lockedDeliveries(idArray)})) AND ${isUnrecorded}
      RETURNING i.*, d.account_id, d.webhook_id, d.attempt_count AS number, d.run = i.run AS is_current
    ), logged AS (
      INSERT INTO attempts
        (delivery_id, number, started_at, duration_ms, response_status, response_body, reposted, webhook_version)
      SELECT id, number, started_at, duration_ms, response_status, response_body, reposted, webhook_version FROM settled
    ), counted AS (
      ${countingAttempts(sql`
        SELECT *, true AS is_success, CASE WHEN is_current THEN 'succeeded' END AS ended FROM settled
      `)}
    ), removed AS (
      ${queue.removal(sql`SELECT job_id FROM settled WHERE is_current`)}
    )
    SELECT EXISTS (
      SELECT FROM webhooks WHERE id = ANY(${webhookIds}::text[]) AND failing_since IS NOT NULL
    ) AS were_failing
  `.execute(db)
  return { wereFailing: rows[0]?.were_failing === true }
}
