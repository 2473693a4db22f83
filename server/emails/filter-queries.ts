import { type RawBuilder, sql } from 'kysely'
import { type Handle, inTransaction } from '../database/connection.ts'
import { readInOrder } from '../database/index-order.ts'
import type { EmailStatus } from '../database/tables/emails.ts'
import type { Scope } from '../shared/scope.ts'
import type { Candidates, IdRange } from './search-queries.ts'

/*
 * The emails that a list with filters looks at, newest first and in bounded time, however many emails an account has.
 *
 * Each filter here has an index with the emails of an account in the order of the list. The newest emails of each filter
 * are read. Those of one filter are looked at: of the one whose newest emails reach furthest back. So a rare value is
 * found at once, whatever the other filters with an index are.
 */

/** The filters of a list that have an index. */
export type IndexedFilters = {
  /** Made by `addressKey`. */
  recipientKey?: string | undefined
  /** Made by `pairsOf`. */
  pairs: readonly string[]
  tag?: string | undefined
  campaign?: string | undefined
  /** One that few emails end in: see `isFew`. */
  status?: EmailStatus | undefined
}

/** Returns whether an index holds the emails in this state. Most emails end in the others. */
export function isFew(status: EmailStatus): boolean {
  return !['sent', 'delivered', 'validated'].includes(status)
}

type Source = RawBuilder<{ id: string }>

/** Returns a query for the newest ids of each filter. Row comparisons, so that only one index has the order. */
function sourcesOf(
  { accountId, mode }: Scope,
  { recipientKey, pairs, tag, campaign, status }: IndexedFilters,
  { range: { above, below }, limit }: { range: IdRange; limit: number },
): Source[] {
  const most = sql.lit(limit)
  const ofAccount = (table: string, column: string, value: string): Source => {
    const key = sql.raw(column)
    return sql`
      SELECT email_id AS id FROM ${sql.table(table)}
      WHERE (account_id, ${key}, email_id) < (${accountId}, ${value}, ${below})
        AND (account_id, ${key}, email_id) > (${accountId}, ${value}, ${above})
      ORDER BY account_id DESC, ${key} DESC, email_id DESC LIMIT ${most}`
  }
  const ofEmails = (column: string, value: string, indexed: RawBuilder<unknown>): Source => {
    const key = sql.raw(column)
    return sql`
      SELECT id FROM emails
      WHERE (account_id, ${key}, id) < (${accountId}, ${value}, ${below})
        AND (account_id, ${key}, id) > (${accountId}, ${value}, ${above}) AND ${indexed}
      ORDER BY account_id DESC, ${key} DESC, id DESC LIMIT ${most}`
  }
  return [
    ...(recipientKey === undefined ? [] : [ofAccount('email_recipients', 'address_key', recipientKey)]),
    ...pairs.map((pair) => ofAccount('email_metadata', 'pair', pair)),
    ...(tag === undefined
      ? []
      : [
          sql<{ id: string }>`
            SELECT email_id AS id FROM email_tags
            WHERE (account_id, mode, tag, email_id) < (${accountId}, ${mode}, ${tag}, ${below})
              AND (account_id, mode, tag, email_id) > (${accountId}, ${mode}, ${tag}, ${above})
            ORDER BY account_id DESC, mode DESC, tag DESC, email_id DESC LIMIT ${most}`,
        ]),
    // The last condition is that of the partial index.
    ...(campaign === undefined ? [] : [ofEmails('campaign_id', campaign, sql`campaign_id IS NOT NULL`)]),
    ...(status === undefined
      ? []
      : [ofEmails('status', status, sql`status NOT IN ('sent', 'delivered', 'validated')`)]),
  ]
}

/**
 * Returns the newest emails of one of the filters, at most `limit`: emails that fit all filters are among them, as far
 * as they reach. Some may be of the other mode.
 *
 * @param filters One at least.
 */
export async function selectOfRarest(
  handle: Handle,
  scope: Scope,
  filters: IndexedFilters,
  { range, limit }: { range: IdRange; limit: number },
): Promise<Candidates> {
  const sources = sourcesOf(scope, filters, { range, limit })
  const looked = sources.map((source, index) => sql`SELECT ${sql.lit(index)} AS source, id FROM (${source}) s`)
  const statement = sql<{ id: string | null; looked_to: string | null }>`
    WITH looked AS MATERIALIZED (${sql.join(looked, sql` UNION ALL `)}),
    rarest AS (
      SELECT s.source, CASE WHEN count(id) >= ${sql.lit(limit)} THEN min(id) END AS looked_to
      FROM generate_series(0, ${sql.lit(sources.length - 1)}) AS s (source) LEFT JOIN looked USING (source)
      GROUP BY s.source ORDER BY looked_to NULLS FIRST, count(id) LIMIT 1
    )
    SELECT id, looked_to FROM rarest LEFT JOIN looked USING (source)
  `
  const { rows } = await inTransaction(handle, async (trx) => {
    await readInOrder(trx, {})
    return statement.execute(trx)
  })
  return { ids: rows.flatMap(({ id }) => id ?? []), lookedTo: rows[0]?.looked_to ?? null }
}
