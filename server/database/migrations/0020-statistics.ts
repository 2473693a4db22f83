import { type Kysely, sql } from 'kysely'

/**
 * Statistics. A figure of 0 is null. What happens is appended to the deltas, in the transaction that makes it true; a
 * worker adds the deltas to the hours and days and deletes them.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- Emptied as fast as it fills: vacuum early, and only by the number of dead rows. No foreign key: checking it would
    -- lock the row of the account for each batch of deliveries.
    CREATE TABLE statistics_deltas (
      account_id text COLLATE "C" NOT NULL,
      id bigint NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 100),
      mode text NOT NULL,
      kind text NOT NULL,
      key text COLLATE "C" NOT NULL,
      hour timestamptz(0) NOT NULL,
      sent integer, delivered integer, bounced integer, hard_bounced integer, rejected integer, complained integer,
      failed integer, suppressed integer, delayed integer, opened integer, opens integer, automated_opens integer,
      clicked integer, clicks integer, automated_clicks integer,
      attempts integer, failed_attempts integer, succeeded_deliveries integer, failed_deliveries integer,
      answer_ms bigint,
      latency_10 integer, latency_25 integer, latency_50 integer, latency_100 integer, latency_250 integer,
      latency_500 integer, latency_1000 integer, latency_2500 integer, latency_5000 integer, latency_10000 integer,
      latency_more integer,
      PRIMARY KEY (account_id, id)
    ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

    CREATE TABLE statistics_hours (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      mode text NOT NULL,
      kind text NOT NULL,
      key text COLLATE "C" NOT NULL,
      hour timestamptz(0) NOT NULL,
      sent bigint, delivered bigint, bounced bigint, hard_bounced bigint, rejected bigint, complained bigint,
      failed bigint, suppressed bigint, delayed bigint, opened bigint, opens bigint, automated_opens bigint,
      clicked bigint, clicks bigint, automated_clicks bigint,
      attempts bigint, failed_attempts bigint, succeeded_deliveries bigint, failed_deliveries bigint,
      answer_ms bigint,
      latency_10 bigint, latency_25 bigint, latency_50 bigint, latency_100 bigint, latency_250 bigint,
      latency_500 bigint, latency_1000 bigint, latency_2500 bigint, latency_5000 bigint, latency_10000 bigint,
      latency_more bigint,
      PRIMARY KEY (account_id, mode, kind, key, hour)
    ) WITH (fillfactor = 80);
    -- For retention, which deletes the old hours of all accounts.
    CREATE INDEX statistics_hours_by_time ON statistics_hours (hour);

    CREATE TABLE statistics_days (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      mode text NOT NULL,
      kind text NOT NULL,
      key text COLLATE "C" NOT NULL,
      day timestamptz(0) NOT NULL,
      sent bigint, delivered bigint, bounced bigint, hard_bounced bigint, rejected bigint, complained bigint,
      failed bigint, suppressed bigint, delayed bigint, opened bigint, opens bigint, automated_opens bigint,
      clicked bigint, clicks bigint, automated_clicks bigint,
      attempts bigint, failed_attempts bigint, succeeded_deliveries bigint, failed_deliveries bigint,
      answer_ms bigint,
      latency_10 bigint, latency_25 bigint, latency_50 bigint, latency_100 bigint, latency_250 bigint,
      latency_500 bigint, latency_1000 bigint, latency_2500 bigint, latency_5000 bigint, latency_10000 bigint,
      latency_more bigint,
      PRIMARY KEY (account_id, mode, kind, key, day)
    ) WITH (fillfactor = 80);
    -- For all domains, tags or webhooks of some days.
    CREATE INDEX statistics_days_by_kind ON statistics_days (account_id, mode, kind, day);
    CREATE INDEX statistics_days_by_time ON statistics_days (day);
  `)
    .execute(db)
}
