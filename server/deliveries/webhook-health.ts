import { countedPending, type WebhookHealth } from '../../contract/webhooks.ts'
import type { FixedSql } from '../database/prepared.ts'
import { freshSeconds } from './waiting.ts'

/** The limit of a flow is shown for this long after the flow last had work. */
const limitSeconds = 60
/** The last hour, rounded up to the start of the five-minute bucket in which it began. */
const hourSeconds = 3_900

/** The columns of `healthOfWebhook`. */
export type HealthRow = {
  limit: number | null
  in_flight: number
  pending: number
  oldest_pending_at: Date | null
  succeeded: number
  failed: number
  duration_ms: number
  max_duration_ms: number | null
}

/**
 * Selects the health of a webhook, in one row, for a `LATERAL` behind `webhooks`. Each part reads at most as many rows
 * as its bound.
 */
export const healthOfWebhook: FixedSql = {
  sql: `
    WITH present AS (SELECT pgboss.job_now() AS now OFFSET 0),
    states AS (
      SELECT sum(max_in_flight)::int AS "limit",
        coalesce(sum(in_flight) FILTER (WHERE updated_at > now - make_interval(secs => ${freshSeconds})), 0)::int
          AS in_flight
      FROM present, flow_states
      WHERE flow_states.flow = webhooks.flow AND updated_at > now - make_interval(secs => ${limitSeconds})
    ), waiting AS (
      SELECT count(*)::int AS pending, min(id) AS oldest FROM (
        -- Written as in the definition of a partial index, which has this order and the status. The limit is a
        -- subquery, so that the planner expects to read few of them, and uses that order instead of sorting.
        SELECT id, status FROM deliveries
        WHERE webhook_id = webhooks.id AND status <> 'succeeded'
        ORDER BY id DESC LIMIT (SELECT ${countedPending}::bigint)
      ) latest WHERE status = 'pending'
    ), outcomes AS (
      SELECT coalesce(sum(succeeded), 0)::int AS succeeded, coalesce(sum(failed), 0)::int AS failed,
        coalesce(sum(duration_ms), 0)::float8 AS duration_ms, max(max_duration_ms) AS max_duration_ms
      FROM present, webhook_outcomes
      WHERE webhook_id = webhooks.id AND bucket > now - make_interval(secs => ${hourSeconds})
    )
    SELECT states.*, pending, outcomes.*,
      (SELECT created_at FROM deliveries WHERE id = oldest) AS oldest_pending_at
    FROM states, waiting, outcomes
  `,
}

/** Returns the health as clients see it. */
export function toHealth(row: HealthRow): WebhookHealth {
  const attempts = row.succeeded + row.failed
  return {
    limit: row.limit,
    inFlight: row.in_flight,
    pending: row.pending,
    oldestPendingAt: row.oldest_pending_at?.toISOString() ?? null,
    lastHour: {
      attempts,
      successRate: attempts === 0 ? null : row.succeeded / attempts,
      meanDurationMs: attempts === 0 ? null : Math.round(row.duration_ms / attempts),
      maxDurationMs: row.max_duration_ms,
    },
  }
}
