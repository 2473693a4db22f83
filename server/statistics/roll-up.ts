import { sql } from 'kysely'
import { maxKeysPerDay } from '../../contract/statistics.ts'
import { type Db, inTransaction } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import { type Loop, startLoop } from '../lib/polling-loop.ts'
import { figures } from './figures.ts'

/*
 * Figures are appended to `statistics_deltas`, in the transaction of what they count: no process waits for another.
 * The roll-up adds the deltas to the hours and days, and deletes them in the same transaction. So a figure is the sum of
 * the rolled-up rows and the deltas, in one snapshot, whenever it is read.
 *
 * The totals of an account have every delta, and so have its campaigns, which are rows of their own anyway. Of its
 * domains, tags and webhooks, and of the domains that its campaigns write to, the first `maxKeysPerDay` of each kind get
 * rows of their own in a day: an account cannot fill the disk with made-up tags.
 */

/** Maximum number of deltas rolled up in one transaction. */
const pageSize = 5_000

/** Where a roll-up continues: above the last delta that was rolled up. Null: at the beginning. */
export type DeltaPosition = { accountId: string; id: string } | null

export type RollUpOptions = {
  db: Db
  /** Milliseconds between roll-ups. */
  intervalMs: number
  onError: (error: unknown) => void
}

/** Starts rolling up deltas. Every process with workers does; one of them at a time. */
export function startRollUp({ db, intervalMs, onError }: RollUpOptions): Loop {
  let after: DeltaPosition = null
  return startLoop({
    intervalMs,
    onError,
    async run() {
      after = await rollUp(db, after)
      return after !== null
    },
  })
}

const names = sql.raw(figures.join(', '))
const sums = sql.raw(figures.map((figure) => `sum(${figure})::bigint AS ${figure}`).join(', '))
const isAnyKey = sql`kind IN ('domain', 'tag', 'webhook', 'campaign_domain')`
/** Of these only the days are read. */
const isPartOfCampaign = sql`kind IN ('campaign_link', 'campaign_variant', 'campaign_mailbox', 'campaign_domain')`

/** Returns the assignments that add the figures of a row to those of the row that is there, which is called `there`. */
const added = sql.raw(
  figures
    .map((figure) => `${figure} = coalesce(there.${figure} + excluded.${figure}, there.${figure}, excluded.${figure})`)
    .join(', '),
)

/** A constant: any number that no other advisory lock of the service has. */
const rollUpLock = 4_207_116_016

/**
 * Rolls up one page of deltas, in order of account. Returns where to continue; null: it has reached the end, or another
 * process is rolling up.
 */
export async function rollUp(db: Db, after: DeltaPosition): Promise<DeltaPosition> {
  return inTransaction(db, async (trx) => {
    // A lock rather than skipping locked rows: two roll-ups would wait for each other's hours.
    const [turn] = await executePrepared(
      trx,
      { name: 'roll_up_turn' },
      sql<{ is_ours: boolean }>`
        SELECT EXISTS (SELECT FROM statistics_deltas) AND pg_try_advisory_xact_lock(${rollUpLock}::bigint) AS is_ours
      `,
    )
    if (turn?.is_ours !== true) return null
    const [last] = await executePrepared(
      trx,
      { name: 'roll_up_statistics' },
      sql<{ count: number; account_id: string | null; id: string | null }>`
        WITH page AS MATERIALIZED (
          SELECT account_id, id FROM statistics_deltas
          WHERE (account_id, id) > (${after?.accountId ?? ''}, ${after?.id ?? '0'}::bigint)
          ORDER BY account_id, id LIMIT ${pageSize}
        ), taken AS (
          DELETE FROM statistics_deltas d USING page p WHERE d.account_id = p.account_id AND d.id = p.id
          RETURNING d.*
        ), expanded AS (
          SELECT account_id, mode, kind, key, hour, ${names} FROM taken WHERE key <> ''
          UNION ALL
          SELECT account_id, mode, CASE kind WHEN 'domain' THEN 'emails' ELSE 'webhooks' END, '', hour, ${names}
          FROM taken WHERE kind IN ('domain', 'webhook')
        ), summed AS MATERIALIZED (
          SELECT account_id, mode, kind, key, hour, date_bin('1 day', hour, '2000-01-01 00:00Z') AS day, ${sums}
          FROM expanded
          -- The account may be deleted by now.
          WHERE account_id IN (SELECT id FROM accounts WHERE id IN (SELECT account_id FROM page))
          GROUP BY account_id, mode, kind, key, hour
        ), wanted AS MATERIALIZED (
          SELECT w.*, EXISTS (
            SELECT FROM statistics_days d
            WHERE (d.account_id, d.mode, d.kind, d.key, d.day) = (w.account_id, w.mode, w.kind, w.key, w.day) OFFSET 0
          ) AS is_known
          FROM (SELECT DISTINCT account_id, mode, kind, key, day FROM summed WHERE ${isAnyKey}) w
        ), room AS MATERIALIZED (
          SELECT r.*, ${maxKeysPerDay} - (
            SELECT count(*) FROM (
              SELECT FROM statistics_days d
              WHERE (d.account_id, d.mode, d.kind, d.day) = (r.account_id, r.mode, r.kind, r.day) LIMIT ${maxKeysPerDay}
            ) known
          ) AS left_over
          FROM (SELECT DISTINCT account_id, mode, kind, day FROM wanted WHERE NOT is_known) r
        ), refused AS MATERIALIZED (
          SELECT account_id, mode, kind, key, day FROM (
            SELECT w.*, r.left_over,
              row_number() OVER (PARTITION BY account_id, mode, kind, day ORDER BY key) AS number
            FROM wanted w JOIN room r USING (account_id, mode, kind, day) WHERE NOT w.is_known
          ) n
          WHERE number > left_over
        ), admitted AS MATERIALIZED (
          SELECT * FROM summed s
          WHERE (account_id, mode, kind, key, day) NOT IN (SELECT account_id, mode, kind, key, day FROM refused)
        ), hours AS (
          INSERT INTO statistics_hours AS there (account_id, mode, kind, key, hour, ${names})
          SELECT account_id, mode, kind, key, hour, ${names} FROM admitted WHERE NOT ${isPartOfCampaign}
          ON CONFLICT (account_id, mode, kind, key, hour) DO UPDATE SET ${added}
        ), days AS (
          INSERT INTO statistics_days AS there (account_id, mode, kind, key, day, ${names})
          SELECT account_id, mode, kind, key, day, ${sums} FROM admitted GROUP BY account_id, mode, kind, key, day
          ON CONFLICT (account_id, mode, kind, key, day) DO UPDATE SET ${added}
        )
        SELECT (SELECT count(*) FROM page)::int AS count, (SELECT account_id FROM page ORDER BY account_id DESC LIMIT 1),
          (SELECT id::text FROM page ORDER BY account_id DESC, id DESC LIMIT 1)
      `,
    )
    if (last === undefined || last.count < pageSize || last.account_id === null || last.id === null) return null
    return { accountId: last.account_id, id: last.id }
  })
}
