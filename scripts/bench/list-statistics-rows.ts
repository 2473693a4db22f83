import { type RawBuilder, sql } from 'kysely'
import { largeCampaign } from './list-campaign-rows.ts'

/*
 * The hours and days of the accounts of `list-rows.ts`, as the service rolls them up. How many there are depends on the
 * time and on what is counted apart, not on the number of emails.
 */

const tagCount = 200
/** Sending domains of the large account. */
export const domainCount = 20
/** Links and well-known mailbox providers of the campaign. */
const linkCount = 20
const providerCount = 10
/** Domains of recipients of the campaign on each of its last days: as many as there is room for. */
const recipientDomainCount = 1_000
const recipientDomainDays = 3
/** Days with rows. */
const dayCount = 30

/** Returns the statements for the statistics, after the one for webhooks. */
export function statisticsRows(): RawBuilder<unknown>[] {
  const campaignPrefix = sql.lit(`${largeCampaign}/`)
  return [
    sql`
      CREATE TABLE bench_counted AS
      SELECT row_number() OVER () AS number, c.* FROM (
        SELECT account_id, kind, '' COLLATE "C" AS key, number = 0 AS has_hours, ${sql.lit(dayCount)} AS days
        FROM bench_accounts, unnest('{emails,webhooks}'::text[]) kind
        UNION ALL
        SELECT account_id, kind, key, kind NOT LIKE 'campaign\\_%',
          CASE kind WHEN 'campaign_domain' THEN ${sql.lit(recipientDomainDays)} ELSE ${sql.lit(dayCount)} END
        FROM bench_accounts a, LATERAL (
          SELECT 'tag', unnest('{welcome,receipt,rare}'::text[])
          UNION ALL SELECT 'tag', 'tag-' || n FROM generate_series(4, ${sql.lit(tagCount)}) n
          UNION ALL SELECT 'domain', bench_id('dom', n) FROM generate_series(0, ${sql.lit(domainCount - 1)}) n
          UNION ALL SELECT 'webhook', id FROM webhooks w WHERE w.account_id = a.account_id
          UNION ALL SELECT 'campaign', ${sql.lit(largeCampaign)}
          UNION ALL SELECT 'campaign_link', ${campaignPrefix} || n FROM generate_series(1, ${sql.lit(linkCount)}) n
          UNION ALL SELECT 'campaign_mailbox', ${campaignPrefix} || 'Provider ' || n
            FROM generate_series(1, ${sql.lit(providerCount)}) n
          UNION ALL SELECT 'campaign_domain', ${campaignPrefix} || 'mail-' || n || '.example'
            FROM generate_series(1, ${sql.lit(recipientDomainCount)}) n
        ) k (kind, key)
        WHERE number = 0
      ) c`,
    sql`${insertInto('hour', 24 * dayCount)} WHERE has_hours ORDER BY ago DESC, kind, key`,
    sql`${insertInto('day', dayCount)} WHERE ago < days ORDER BY ago DESC, kind, key`,
  ]
}

/** Returns a statement for the last `count` hours or days, in the order of time. */
function insertInto(step: 'hour' | 'day', count: number): RawBuilder<unknown> {
  const interval = sql`${sql.lit(`1 ${step}`)}::interval`
  return sql`
    INSERT INTO ${sql.raw(`statistics_${step}s`)} (account_id, mode, kind, key, ${sql.raw(step)}, sent, delivered,
      bounced, opened, opens, clicked, clicks, attempts, failed_attempts, succeeded_deliveries, answer_ms, latency_25,
      latency_100)
    SELECT account_id, 'live', kind, key, date_bin(${interval}, now(), '2000-01-01 00:00Z') - ${interval} * ago,
      sent, sent - bounced, bounced, sent / 3, sent / 2, sent / 20, sent / 10, attempts, attempts / 100,
      attempts - attempts / 100, attempts * 40, attempts / 2, attempts - attempts / 2
    FROM bench_counted CROSS JOIN generate_series(0, ${sql.lit(count - 1)}) ago
    CROSS JOIN LATERAL (
      SELECT CASE WHEN kind NOT LIKE 'webhook%' THEN 100 + number % 50 END AS sent,
        CASE WHEN kind LIKE 'webhook%' THEN 100 + number % 50 END AS attempts
    ) n
    CROSS JOIN LATERAL (SELECT sent / 50 AS bounced) b`
}
