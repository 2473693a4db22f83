import { type Kysely, sql } from 'kysely'

/**
 * Recoveries. Secrets that a webhook had before its previous one, the length of its runs of failures, and the runs of a
 * delivery. Every column has a constant default or none: no table is rewritten, and each lock lasts for
 * milliseconds. Processes of the version before do not name these columns and go on working.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE webhooks
      -- Older than previous_secret, newest first, each with the time until which it still signs.
      ADD COLUMN earlier_secrets bytea[] NOT NULL DEFAULT '{}',
      ADD COLUMN earlier_secrets_expire_at timestamptz(3)[] NOT NULL DEFAULT '{}',
      -- Failed attempts since failing_since, counted no further than is needed to judge.
      ADD COLUMN failing_attempts integer NOT NULL DEFAULT 0;

    ALTER TABLE deliveries
      -- Grows when a delivery that has ended is sent again.
      ADD COLUMN run integer NOT NULL DEFAULT 0;

    CREATE TABLE webhook_recoveries (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      id text COLLATE "C" NOT NULL,
      webhook_id text COLLATE "C" NOT NULL,
      status text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'completed', 'canceled')),
      since timestamptz(3) NOT NULL,
      until timestamptz(3),
      -- Null: all that the webhook subscribes to.
      types text[],
      found integer NOT NULL,
      found_all boolean NOT NULL,
      done integer NOT NULL DEFAULT 0,
      -- The event it has come to: its position, or its id where that is 0.
      at_position bigint NOT NULL DEFAULT 0,
      at_id text COLLATE "C" NOT NULL DEFAULT '',
      -- The last position it looks at. Null: not begun.
      last_position bigint,
      -- Which task carries it on.
      task integer NOT NULL DEFAULT 0,
      created_at timestamptz(3) NOT NULL,
      completed_at timestamptz(3),
      PRIMARY KEY (account_id, id),
      CHECK ((status = 'running') = (completed_at IS NULL))
    );
    CREATE INDEX webhook_recoveries_by_webhook ON webhook_recoveries (account_id, webhook_id, id);
    CREATE UNIQUE INDEX webhook_recoveries_running ON webhook_recoveries (account_id, webhook_id)
      WHERE status = 'running';
    CREATE INDEX webhook_recoveries_ended ON webhook_recoveries (completed_at) WHERE status <> 'running';
  `)
    .execute(db)
}
