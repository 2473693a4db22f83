import { type Kysely, sql } from 'kysely'

/** Campaigns and whom they go to: docs/architecture/campaign-states.md. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE campaigns (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      id text COLLATE "C" NOT NULL,
      mode text NOT NULL CHECK (mode IN ('test', 'live')),
      status text NOT NULL CHECK (status IN ('draft', 'scheduled', 'sending', 'paused', 'completed', 'canceled')),
      -- Why the service paused or canceled it.
      status_reason text,
      name text NOT NULL,
      -- No reference: the audience may be deleted.
      audience_id text COLLATE "C" NOT NULL,
      sender text NOT NULL,
      reply_to text[] NOT NULL,
      subject text NOT NULL,
      preheader text,
      html text,
      text text,
      track_opens boolean NOT NULL,
      track_clicks boolean NOT NULL,
      tags text[] NOT NULL,
      metadata jsonb NOT NULL,
      -- Messages in any 60 minutes. Null: no limit.
      throttle integer,
      late_start text NOT NULL CHECK (late_start IN ('send', 'skip')),
      scheduled_at timestamptz(3),
      -- People who joined later are not in it. Null: its recipients are not being listed yet.
      listed_at timestamptz(3),
      -- The last subscriber whose contact was looked at for the list of recipients.
      listed_to text COLLATE "C" NOT NULL DEFAULT '',
      started_at timestamptz(3),
      ended_at timestamptz(3),
      -- When a worker looks at it next. In the future while a worker has it in hand. Null: there is nothing to do.
      due_at timestamptz(3),
      -- No recipient below this one waits.
      handled_to text COLLATE "C" NOT NULL DEFAULT '',
      -- The end of the last slot of the throttle that was taken. Milliseconds of Unix time.
      throttled_to double precision NOT NULL DEFAULT 0,
      -- Recipients by status, changed in the transactions that change the recipients. The others wait.
      recipient_count integer NOT NULL DEFAULT 0,
      queued_count integer NOT NULL DEFAULT 0,
      handed_over_count integer NOT NULL DEFAULT 0,
      failed_count integer NOT NULL DEFAULT 0,
      left_count integer NOT NULL DEFAULT 0,
      unsubscribed_count integer NOT NULL DEFAULT 0,
      suppressed_count integer NOT NULL DEFAULT 0,
      canceled_count integer NOT NULL DEFAULT 0,
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      PRIMARY KEY (account_id, id)
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
    CREATE INDEX campaigns_due ON campaigns (account_id, due_at) WHERE due_at IS NOT NULL;
    CREATE INDEX campaigns_by_mode ON campaigns (account_id, mode, id);

    CREATE TABLE campaign_recipients (
      account_id text COLLATE "C" NOT NULL,
      campaign_id text COLLATE "C" NOT NULL,
      subscriber_id text COLLATE "C" NOT NULL,
      status text COLLATE "C" NOT NULL,
      email_id text COLLATE "C",
      reason text,
      PRIMARY KEY (account_id, campaign_id, subscriber_id),
      FOREIGN KEY (account_id, campaign_id) REFERENCES campaigns ON DELETE CASCADE
    ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
    -- Few: those whose email waits for its first attempt.
    CREATE INDEX campaign_recipients_queued ON campaign_recipients (account_id, campaign_id, email_id)
      WHERE status = 'queued';
  `)
    .execute(db)
}
