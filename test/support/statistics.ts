import { sql } from 'kysely'
import type { Statistics, StatisticsQuery } from '../../contract/statistics.ts'
import type { Db } from '../../server/database/connection.ts'
import type { Clock } from '../../server/lib/clock.ts'
import type { Scope } from '../../server/shared/scope.ts'
import { createStatisticsService } from '../../server/statistics/service.ts'

const found = async () => undefined

/** Returns the statistics of the API. Every domain and webhook counts as existing. */
export function statisticsOf(
  db: Db,
  clock: Clock,
  scope: Scope,
  query: Partial<StatisticsQuery> = {},
): Promise<Statistics> {
  const service = createStatisticsService({
    clock,
    statisticsMs: 400 * 86_400_000,
    checkDomain: found,
    checkWebhook: found,
  })
  return service.get(db, scope, { step: 'hour', ...query })
}

/**
 * Describes where the statistics differ from attempts, deliveries and events. Returns an empty list when each is
 * counted once, in the figures of the webhook and of the account, by hour and by day. Reads all in one statement.
 */
export async function miscounted(db: Db): Promise<string[]> {
  const { rows } = await sql<{ what: string; counted: number; there: number }>`
    WITH deltas AS (
      SELECT 'webhook' AS kind, key, attempts, succeeded_deliveries, sent, delivered, bounced, failed, suppressed
      FROM statistics_deltas WHERE kind IN ('webhook', 'domain')
    ), hours AS (
      SELECT kind, key, attempts, succeeded_deliveries, sent, delivered, bounced, failed, suppressed FROM statistics_hours
    ), days AS (
      SELECT kind, key, attempts, succeeded_deliveries, sent, delivered, bounced, failed, suppressed FROM statistics_days
    ), wanted AS (
      SELECT 'attempts of ' || d.webhook_id AS what, count(*) AS there,
        (SELECT sum(attempts) FROM (
          SELECT * FROM deltas UNION ALL SELECT * FROM hours WHERE kind = 'webhook'
        ) s WHERE key = d.webhook_id) AS counted
      FROM attempts a JOIN deliveries d ON d.id = a.delivery_id JOIN events e ON e.id = d.event_id
      WHERE NOT e.sample GROUP BY d.webhook_id
      UNION ALL
      SELECT 'successes of ' || d.webhook_id, count(*) FILTER (WHERE d.status = 'succeeded'),
        (SELECT sum(succeeded_deliveries) FROM (
          SELECT * FROM deltas UNION ALL SELECT * FROM days WHERE kind = 'webhook'
        ) s WHERE key = d.webhook_id)
      FROM deliveries d JOIN events e ON e.id = d.event_id WHERE NOT e.sample GROUP BY d.webhook_id
      UNION ALL
      SELECT 'all attempts by ' || step, (
        SELECT count(*) FROM attempts a JOIN deliveries d ON d.id = a.delivery_id JOIN events e ON e.id = d.event_id
        WHERE NOT e.sample
      ), coalesce((SELECT sum(attempts) FROM deltas), 0) + coalesce((
        SELECT sum(attempts) FROM (
          SELECT 'hour' AS step, * FROM hours UNION ALL SELECT 'day', * FROM days
        ) s WHERE s.step = steps.step AND s.kind = 'webhooks'
      ), 0)
      FROM (VALUES ('hour'), ('day')) steps (step)
      UNION ALL
      SELECT types.type, (SELECT count(*) FROM events e WHERE e.type = types.type AND NOT e.sample), CASE types.type
        WHEN 'email.sent' THEN sum(sent) WHEN 'email.delivered' THEN sum(delivered) WHEN 'email.bounced' THEN sum(bounced)
        ELSE coalesce(sum(failed), 0) + coalesce(sum(suppressed), 0) END
      FROM (VALUES ('email.sent'), ('email.delivered'), ('email.bounced'), ('email.failed')) types (type)
      LEFT JOIN (SELECT * FROM deltas UNION ALL SELECT * FROM days WHERE kind = 'emails') s ON true
      GROUP BY types.type
    )
    SELECT what, coalesce(counted, 0)::int AS counted, there::int AS there FROM wanted
  `.execute(db)
  return rows
    .filter(({ counted, there }) => counted !== there)
    .map(({ what, counted, there }) => `${what}: ${counted} are counted, and ${there} are there`)
}
