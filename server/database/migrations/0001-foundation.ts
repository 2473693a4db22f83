import { type Kysely, sql } from 'kysely'

/** Accounts, keys, webhooks, the outbox, deliveries, people and what the API keeps for itself. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE accounts (
      id text COLLATE "C" PRIMARY KEY,
      name text NOT NULL,
      plan text NOT NULL,
      created_at timestamptz(3) NOT NULL DEFAULT now()
    );

    CREATE TABLE api_keys (
      id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      mode text NOT NULL CHECK (mode IN ('test', 'live')),
      name text NOT NULL,
      permissions text[] NOT NULL,
      secret_hash bytea NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
      last_four text NOT NULL,
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      revoked_at timestamptz(3)
    );
    CREATE INDEX api_keys_by_account ON api_keys (account_id, id);

    CREATE TABLE webhooks (
      id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      lane integer NOT NULL GENERATED ALWAYS AS IDENTITY,
      url text NOT NULL,
      events text[] NOT NULL,
      description text,
      status text NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'disabled')),
      disabled_reason text CHECK (disabled_reason IN ('manual', 'gone', 'failing')),
      secret bytea NOT NULL,
      previous_secret bytea,
      previous_secret_expires_at timestamptz(3),
      failing_since timestamptz(3),
      slow boolean NOT NULL DEFAULT false,
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      updated_at timestamptz(3) NOT NULL DEFAULT now(),
      CHECK ((status = 'disabled') = (disabled_reason IS NOT NULL))
    );
    CREATE INDEX webhooks_by_account ON webhooks (account_id, id);
    CREATE INDEX webhooks_slow ON webhooks (id) WHERE slow;

    CREATE TABLE events (
      id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL,
      type text NOT NULL,
      body text NOT NULL,
      -- A sample sent by POST …/test: it can be got and resent, but is no fact and stands in no list.
      sample boolean NOT NULL DEFAULT false,
      created_at timestamptz(3) NOT NULL,
      traceparent text
    );
    CREATE INDEX events_by_account ON events (account_id, id) WHERE NOT sample;

    -- Emptied as fast as it fills: vacuum early, and only by the number of dead rows.
    CREATE TABLE outbox (
      event_id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL,
      type text NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

    -- Every delivery leaves a dead entry among the pending, which all who look for the oldest walk over:
    -- vacuum when a fiftieth of the table is dead, not a fifth.
    CREATE TABLE deliveries (
      id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL,
      webhook_id text COLLATE "C" NOT NULL,
      event_id text COLLATE "C" NOT NULL,
      event_type text NOT NULL,
      status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'failed', 'canceled')),
      attempt_count integer NOT NULL DEFAULT 0,
      schedule_position integer NOT NULL DEFAULT 0,
      next_attempt_at timestamptz(3),
      created_at timestamptz(3) NOT NULL,
      completed_at timestamptz(3),
      CHECK ((status = 'pending') = (completed_at IS NULL))
    ) WITH (autovacuum_vacuum_scale_factor = 0.02);
    CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, id);
    CREATE INDEX deliveries_pending ON deliveries (id) WHERE status = 'pending';
    -- Those made in another half a minute than their event: seven characters of an id tell 32.8 s. The
    -- others of an event are found by id; see server/background/retention.ts, which asks in these words.
    CREATE INDEX deliveries_apart ON deliveries (event_id) WHERE substr(id, 5, 7) <> substr(event_id, 5, 7);
    -- What is canceled, recovered or looked for of one webhook: few among all that succeeded, and among
    -- all that is pending for others. The status is a key, so that the index alone tells it.
    CREATE INDEX deliveries_unsuccessful ON deliveries (webhook_id, id, status) WHERE status <> 'succeeded';

    CREATE TABLE attempts (
      delivery_id text COLLATE "C" NOT NULL,
      number integer NOT NULL,
      started_at timestamptz(3) NOT NULL,
      duration_ms integer NOT NULL,
      response_status integer,
      response_body text,
      error text,
      PRIMARY KEY (delivery_id, number)
    );

    CREATE TABLE subscribers (
      id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      email text NOT NULL,
      email_key text COLLATE "C" NOT NULL,
      first_name text,
      last_name text,
      status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'unsubscribed')),
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      updated_at timestamptz(3) NOT NULL DEFAULT now(),
      UNIQUE (account_id, email_key)
    );
    CREATE INDEX subscribers_by_account ON subscribers (account_id, id);
    -- Few among many: without it, a list of them reads everybody.
    CREATE INDEX subscribers_unsubscribed ON subscribers (account_id, id) WHERE status = 'unsubscribed';

    CREATE TABLE audiences (
      id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      name text NOT NULL,
      description text,
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      updated_at timestamptz(3) NOT NULL DEFAULT now()
    );
    CREATE INDEX audiences_by_account ON audiences (account_id, id);

    CREATE TABLE contacts (
      audience_id text COLLATE "C" NOT NULL REFERENCES audiences ON DELETE CASCADE,
      subscriber_id text COLLATE "C" NOT NULL REFERENCES subscribers ON DELETE CASCADE,
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      status text NOT NULL CHECK (status IN ('active', 'unsubscribed')),
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      updated_at timestamptz(3) NOT NULL DEFAULT now(),
      PRIMARY KEY (audience_id, subscriber_id)
    );
    CREATE INDEX contacts_by_subscriber ON contacts (subscriber_id, audience_id);
    CREATE INDEX contacts_unsubscribed ON contacts (audience_id, subscriber_id) WHERE status = 'unsubscribed';

    CREATE TABLE idempotency_keys (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      key text COLLATE "C" NOT NULL,
      fingerprint bytea NOT NULL,
      response_status integer,
      response_body bytea,
      created_at timestamptz(3) NOT NULL,
      PRIMARY KEY (account_id, key)
    );
    CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

    CREATE TABLE rate_limit_windows (
      account_id text COLLATE "C" NOT NULL,
      window_start timestamptz(3) NOT NULL,
      used integer NOT NULL,
      PRIMARY KEY (account_id, window_start)
    ) WITH (fillfactor = 50);

    CREATE TABLE settings (
      name text PRIMARY KEY,
      value text NOT NULL
    );
  `)
    .execute(db)
}
