import { sql } from 'kysely'
import { plainArray } from '../database/arrays.ts'
import type { Db } from '../database/connection.ts'
import { uuidOf } from '../ids.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import type { Settlement } from './settlement.ts'

/**
 * Writes successes down, in one statement: the attempts, the state of their deliveries, and their jobs
 * gone. One whose delivery another worker has carried on meanwhile changes nothing. Answers whether
 * one of the webhooks was failing, whose health the caller must mend.
 */
export async function settleSuccesses(
  { db, queue }: { db: Db; queue: Queue },
  settlements: readonly Settlement[],
): Promise<{ wereFailing: boolean }> {
  if (settlements.length === 0) return { wereFailing: false }
  const webhookIds = [...new Set(settlements.map(({ delivery }) => delivery.webhookId))]
  const ids = settlements.map(({ delivery }) => delivery.id)
  const idArray = plainArray(ids)
  const answers = settlements.map(({ outcome }) => (outcome.kind === 'answered' ? outcome : null))
  const { rows } = await sql<{ were_failing: boolean }>`
    WITH input AS (
      SELECT * FROM unnest(
        ${idArray}::text[],
        ${plainArray(ids.map(uuidOf))}::uuid[],
        ${plainArray(settlements.map(({ delivery }) => delivery.attemptCount + 1))}::int[],
        ${plainArray(settlements.map(({ outcome }) => outcome.startedAt.toISOString()))}::timestamptz[],
        ${plainArray(settlements.map(({ outcome }) => Math.round(outcome.durationMs)))}::int[],
        ${plainArray(answers.map((answer) => answer?.status ?? null))}::int[],
        ${answers.map((answer) => answer?.body ?? null)}::text[]
      ) AS i (id, job_id, number, started_at, duration_ms, response_status, response_body)
    ), settled AS (
      UPDATE deliveries d SET
        attempt_count = i.number,
        schedule_position = d.schedule_position + 1,
        status = 'succeeded',
        next_attempt_at = NULL,
        completed_at = ${queueNow}
      FROM input i
      -- Said twice: then no statistics, however old, lead to reading more than these.
      WHERE d.id = i.id AND d.id = ANY(${idArray}::text[]) AND d.attempt_count = i.number - 1
      RETURNING i.*
    ), logged AS (
      INSERT INTO attempts (delivery_id, number, started_at, duration_ms, response_status, response_body)
      SELECT id, number, started_at, duration_ms, response_status, response_body FROM settled
    ), removed AS (
      ${queue.removal(sql`SELECT job_id FROM settled`)}
    )
    SELECT EXISTS (
      SELECT FROM webhooks WHERE id = ANY(${webhookIds}::text[]) AND failing_since IS NOT NULL
    ) AS were_failing
  `.execute(db)
  return { wereFailing: rows[0]?.were_failing === true }
}
