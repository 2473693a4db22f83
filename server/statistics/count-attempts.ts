import { type RawBuilder, sql } from 'kysely'
import { latencyClasses } from './figures.ts'

const columns = sql.raw(
  [
    'account_id, mode, kind, key, hour',
    'attempts, failed_attempts, succeeded_deliveries, failed_deliveries, answer_ms',
    ...latencyClasses.map(({ figure }) => figure),
  ].join(', '),
)

/** The lower bounds of all classes but the first. Milliseconds. */
const bounds = sql.raw(latencyClasses.flatMap(({ upToMs }) => (upToMs === null ? [] : [upToMs + 1])).join(', '))

const countsByClass = sql.raw(
  latencyClasses.map((_, index) => `nullif(count(*) FILTER (WHERE c.class = ${index}), 0)`).join(', '),
)

/**
 * Returns a statement that counts attempts, for use after a `WITH`: one row for each webhook and hour. So the attempts
 * are counted if and only if they are recorded.
 *
 * @param attempts A query that yields `account_id`, `webhook_id`, the `webhook_mode` (null: the attempt is not counted),
 *   `started_at`, `duration_ms`, `response_status` (null: no answer), `is_success`, and `ended`: the status of a
 *   delivery that this attempt has ended, `succeeded` or `failed`.
 */
export function countingAttempts(attempts: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    INSERT INTO statistics_deltas (${columns})
    SELECT c.account_id, c.webhook_mode, 'webhook', c.webhook_id, c.hour,
      count(*), nullif(count(*) FILTER (WHERE NOT c.is_success), 0),
      nullif(count(*) FILTER (WHERE c.ended = 'succeeded'), 0), nullif(count(*) FILTER (WHERE c.ended = 'failed'), 0),
      sum(c.duration_ms) FILTER (WHERE c.class IS NOT NULL), ${countsByClass}
    FROM (
      SELECT a.account_id, a.webhook_id, a.webhook_mode, a.is_success, a.ended, a.duration_ms,
        date_bin('1 hour', a.started_at, '2000-01-01 00:00Z') AS hour,
        CASE WHEN a.response_status IS NOT NULL THEN width_bucket(a.duration_ms, ARRAY[${bounds}]) END AS class
      FROM (${attempts}) a WHERE a.webhook_mode IS NOT NULL
    ) c
    GROUP BY c.account_id, c.webhook_mode, c.webhook_id, c.hour
  `
}
