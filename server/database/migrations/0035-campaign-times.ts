import { type Kysely, sql } from 'kysely'

/** When messages of a campaign leave, and what it waits for. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE campaigns
      -- The time at which each person gets it, without a zone. Null: all get it at once.
      ADD COLUMN local_time text,
      -- The zone of people whose own is not known.
      ADD COLUMN fallback_timezone text,
      -- With a local time, \`handled_to\` is a recipient with this time.
      ADD COLUMN handled_send_at timestamptz(3),
      -- The hours of the day in which it sends. Null: always.
      ADD COLUMN send_window json,
      -- What it waits for while it is sending, and until when. Null: it goes on.
      ADD COLUMN waiting_for text CHECK (waiting_for IN ('local_time', 'send_window')),
      ADD COLUMN waiting_until timestamptz(3),
      -- Turns that failed one after the other.
      ADD COLUMN failed_turns integer NOT NULL DEFAULT 0,
      ADD CHECK ((local_time IS NULL) = (fallback_timezone IS NULL)),
      ADD CHECK ((waiting_for IS NULL) = (waiting_until IS NULL));

    -- The instant of the local time. Null: the campaign has none.
    ALTER TABLE campaign_recipients ADD COLUMN send_at timestamptz(3);
    CREATE INDEX campaign_recipients_by_time ON campaign_recipients (account_id, campaign_id, send_at, subscriber_id)
      WHERE status = 'waiting' AND send_at IS NOT NULL;
  `)
    .execute(db)
}
