import { type RawBuilder, sql } from 'kysely'
import type { SegmentCondition } from '../../contract/segment-conditions.ts'

/*
 * The campaigns of the large account of `list-rows.ts` with their recipients, and the segments of its audience. The
 * statements use the functions that `list-rows.ts` creates.
 */

/** A campaign with half of the emails, and one with ten of the oldest. */
export const largeCampaign = 'cmp_01jqz4x7m8e5v9t2k6r3w0y1ab'
export const smallCampaign = 'cmp_01jqz4x7m8e5v9t2k6r3w0y1ac'

/** Emails of the account for each campaign in the list. */
const campaignShare = 1_000
const linkCount = 20

/** SQL for the campaign of the email of row `k`. A recipient whose content could not be rendered has no email. */
export const campaignOfEmail = sql`CASE WHEN k BETWEEN 20 AND 29 THEN ${sql.lit(smallCampaign)}
  WHEN k % 2 = 0 AND k % 1000 <> 34 THEN ${sql.lit(largeCampaign)} END`

/** Returns the statement for the recipients among `rows`. Nine of ten people were deleted since. */
export function recipientsOf(rows: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    INSERT INTO campaign_recipients (account_id, campaign_id, subscriber_id, status, email_id, reason)
    SELECT account_id, CASE WHEN k BETWEEN 20 AND 29 THEN ${sql.lit(smallCampaign)} ELSE ${sql.lit(largeCampaign)} END,
      bench_id('sub', i), status, CASE WHEN status <> 'failed' THEN bench_id('email', i) END,
      CASE status WHEN 'skipped' THEN 'suppressed' WHEN 'failed' THEN 'The content has a fault.' END
    FROM (
      SELECT *, CASE WHEN k BETWEEN 10 AND 19 THEN 'canceled' WHEN k % 1000 = 30 THEN 'skipped'
        WHEN k % 1000 = 34 THEN 'failed' ELSE 'handed_over' END AS status
      FROM ${rows}
    ) r
    WHERE k BETWEEN 20 AND 29 OR k % 2 = 0`
}

/** Segments that most people match, that few match, that none matches, and one that is counted by indexes alone. */
const segmentConditions: readonly SegmentCondition[] = [
  {
    type: 'and',
    conditions: [
      { type: 'field', field: 'status', operator: 'is', value: 'active' },
      { type: 'property', property: 'plan', operator: 'is', value: 'free' },
    ],
  },
  { type: 'field', field: 'firstName', operator: 'is', value: 'Ada 7' },
  { type: 'property', property: 'plan', operator: 'is', value: 'none' },
  { type: 'field', field: 'status', operator: 'is', value: 'unsubscribed' },
]

/**
 * Returns the statements for campaigns and segments, after those for recipients.
 *
 * @param count Emails of the account.
 */
export function campaignsAndSegments(count: number): RawBuilder<unknown>[] {
  const columns = sql.raw(`account_id, id, mode, status, name, audience_id, sender, reply_to, subject, text,
    track_opens, track_clicks, tags, metadata, late_start, created_at, updated_at, listed_at, started_at, ended_at`)
  const written = sql`'News', bench_id('aud', 0), 'Shop <hello@shop.example>', '{}'::text[], 'News', 'Thank you.', true,
    true, '{}'::text[], '{}'::jsonb, 'send'`
  const conditions = segmentConditions.map((condition) => JSON.stringify(condition))
  return [
    // The end is now: until four days later, the statistics count the recipients that are still tried.
    sql`
      INSERT INTO campaigns (${columns}, recipient_count, handed_over_count, failed_count, suppressed_count,
        canceled_count)
      SELECT account_id, campaign_id, 'live', 'completed', ${written}, bench_at(0), now(), bench_at(0), bench_at(0),
        now(),
        count(*), count(*) FILTER (WHERE status = 'handed_over'), count(*) FILTER (WHERE status = 'failed'),
        count(*) FILTER (WHERE status = 'skipped'), count(*) FILTER (WHERE status = 'canceled')
      FROM campaign_recipients GROUP BY account_id, campaign_id`,
    sql`
      INSERT INTO campaigns (${columns})
      SELECT account_id, bench_id('cmp', i), 'live', status, ${written}, at, at, started_at, started_at, started_at
      FROM (
        SELECT *, CASE WHEN status <> 'draft' THEN at END AS started_at
        FROM bench_accounts, generate_series(1, ${sql.lit(Math.ceil(count / campaignShare))}) n,
          LATERAL (SELECT n * ${sql.lit(campaignShare)}::bigint AS i, CASE WHEN n <= 5 THEN 'canceled'
            WHEN n % 100 = 0 THEN 'draft' ELSE 'completed' END AS status) s,
          LATERAL (SELECT bench_at(i) AS at) t
        WHERE number = 0
      ) c`,
    sql`
      INSERT INTO campaign_links (account_id, campaign_id, number, link)
      SELECT account_id, ${sql.lit(largeCampaign)}, n, 'https://shop.example/' || n
      FROM bench_accounts, generate_series(1, ${sql.lit(linkCount)}) n WHERE number = 0`,
    sql`
      INSERT INTO contact_properties (account_id, key, type, created_at, updated_at)
      SELECT account_id, 'plan', 'string', bench_at(0), bench_at(0) FROM bench_accounts WHERE number = 0`,
    sql`
      INSERT INTO segments (account_id, id, audience_id, name, conditions, created_at, updated_at)
      SELECT account_id, bench_id('seg', n), bench_id('aud', 0), 'Segment ' || n, conditions::json, bench_at(0),
        bench_at(0)
      FROM bench_accounts, unnest(${conditions}::text[]) WITH ORDINALITY AS s (conditions, n)
      WHERE number = 0`,
  ]
}
