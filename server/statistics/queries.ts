import { type RawBuilder, sql } from 'kysely'
import type { Handle } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { Scope } from '../shared/scope.ts'
import { type Figure, figures, type StatisticKind } from './figures.ts'

/** Figures by their columns. */
export type Figures = Record<Figure, number>

/** A time. Both bounds are multiples of an hour or a day. */
export type TimeRange = { since: Date; until: Date }

export type SeriesQuery = TimeRange & {
  scope: Scope
  kind: StatisticKind
  /** The id of a domain or webhook, or a tag. Empty: of the kinds `emails` and `webhooks`. */
  key: string
  step: 'hour' | 'day'
}

const names = sql.raw(figures.join(', '))
const sums = sql.raw(figures.map((figure) => `coalesce(sum(${figure}), 0)::float8 AS ${figure}`).join(', '))
/** How much was done: it decides which key is busier. */
const amount = sql`coalesce(sent, 0) + coalesce(rejected, 0) + coalesce(attempts, 0)`

/** Matches the deltas `d` of a kind and key. */
function isAbout(kind: StatisticKind, key: string): RawBuilder<boolean> {
  if (kind === 'emails') return sql`kind = 'domain'`
  if (kind === 'webhooks') return sql`kind = 'webhook'`
  return sql`kind = ${kind} AND key = ${key}`
}

/**
 * Returns the figures of each hour or day in which something was counted, in order. Rolled-up rows and deltas are read
 * in one snapshot, so everything is counted once. The rows come from the primary key, `since` to `until` of one key; the
 * deltas are those of the account.
 */
export async function selectSeries(handle: Handle, query: SeriesQuery): Promise<(Figures & { start: Date })[]> {
  const { scope, kind, key, step, since, until } = query
  const table = sql.raw(`statistics_${step}s`)
  const time = sql.raw(step)
  return executePrepared(
    handle,
    { name: `statistics_series_${step}_${isTotal(kind) ? kind : 'key'}` },
    sql<Figures & { start: Date }>`
      SELECT start, ${sums} FROM (
        SELECT ${time} AS start, ${names} FROM ${table}
        WHERE account_id = ${scope.accountId} AND mode = ${scope.mode} AND kind = ${kind} AND key = ${key}
          AND ${time} >= ${since} AND ${time} < ${until}
        UNION ALL
        SELECT date_bin(${`1 ${step}`}::interval, hour, '2000-01-01 00:00Z'), ${names} FROM statistics_deltas
        WHERE account_id = ${scope.accountId} AND mode = ${scope.mode} AND ${isAbout(kind, key)}
          AND hour >= ${since} AND hour < ${until}
      ) counted
      GROUP BY start ORDER BY start
    `,
  )
}

function isTotal(kind: StatisticKind): kind is 'emails' | 'webhooks' {
  return kind === 'emails' || kind === 'webhooks'
}

export type RankingQuery = TimeRange & { scope: Scope; kind: 'domain' | 'tag' | 'webhook'; limit: number }

/**
 * Returns the figures of the busiest domains, tags or webhooks of some days. Reads the rows of all of them in that time,
 * by the index `statistics_days_by_kind`: at most `maxKeysPerDay` for each day. Adds up all figures of the busiest alone:
 * the sums of the others take several times as long.
 */
export async function selectRanking(handle: Handle, query: RankingQuery): Promise<(Figures & { key: string })[]> {
  const { scope, kind, since, until, limit } = query
  return executePrepared(
    handle,
    { name: 'statistics_ranking' },
    // Row comparisons, so that only one index has these columns, whatever the statistics say.
    sql<Figures & { key: string }>`
      WITH busiest AS MATERIALIZED (
        SELECT key, sum(amount) AS amount FROM (
          SELECT key, ${amount} AS amount FROM statistics_days
          WHERE (account_id, mode, kind, day) >= (${scope.accountId}, ${scope.mode}, ${kind}, ${since})
            AND (account_id, mode, kind, day) < (${scope.accountId}, ${scope.mode}, ${kind}, ${until})
          UNION ALL
          SELECT key, ${amount} FROM statistics_deltas
          WHERE account_id = ${scope.accountId} AND mode = ${scope.mode} AND kind = ${kind} AND key <> ''
            AND hour >= ${since} AND hour < ${until}
        ) counted
        GROUP BY key ORDER BY amount DESC, key LIMIT ${limit}
      )
      SELECT key, ${sums} FROM (
        SELECT b.key, amount, ${names} FROM busiest b CROSS JOIN LATERAL (
          SELECT ${names} FROM statistics_days
          WHERE (account_id, mode, kind, key, day) >= (${scope.accountId}, ${scope.mode}, ${kind}, b.key, ${since})
            AND (account_id, mode, kind, key, day) < (${scope.accountId}, ${scope.mode}, ${kind}, b.key, ${until})
          OFFSET 0
        ) d
        UNION ALL
        SELECT key, amount, ${names} FROM statistics_deltas JOIN busiest USING (key)
        WHERE account_id = ${scope.accountId} AND mode = ${scope.mode} AND kind = ${kind}
          AND hour >= ${since} AND hour < ${until}
      ) counted
      GROUP BY key ORDER BY min(amount) DESC, key
    `,
  )
}
