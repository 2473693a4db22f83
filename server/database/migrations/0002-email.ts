import { type Kysely, sql } from 'kysely'

/** Sending domains, emails with their recipients and history, suppressed addresses, and mail that came in. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE domains (
      id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      name text COLLATE "C" NOT NULL,
      return_path text COLLATE "C" NOT NULL,
      status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'verified', 'failed')),
      rsa_selector text NOT NULL,
      rsa_public_key text NOT NULL,
      rsa_private_key bytea NOT NULL,
      ed25519_selector text NOT NULL,
      ed25519_public_key text NOT NULL,
      ed25519_private_key bytea NOT NULL,
      -- What the last check found of each record, by its purpose.
      findings jsonb NOT NULL DEFAULT '{}',
      -- Since when its records are waited for, and scheduled checks in a row that missed any.
      pending_since timestamptz(3) NOT NULL DEFAULT now(),
      check_count integer NOT NULL DEFAULT 0,
      next_check_at timestamptz(3),
      last_checked_at timestamptz(3),
      verified_at timestamptz(3),
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      updated_at timestamptz(3) NOT NULL DEFAULT now(),
      UNIQUE (account_id, name)
    );
    CREATE INDEX domains_by_account ON domains (account_id, id);
    CREATE INDEX domains_to_check ON domains (next_check_at) WHERE next_check_at IS NOT NULL;

    CREATE TABLE emails (
      id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      mode text NOT NULL CHECK (mode IN ('test', 'live')),
      status text NOT NULL CHECK (status IN ('validated', 'scheduled', 'queued', 'sending', 'sent', 'delivered',
        'bounced', 'failed', 'suppressed', 'canceled')),
      -- Null: a test email, or one whose domain is gone.
      domain_id text COLLATE "C",
      sender text NOT NULL,
      subject text NOT NULL,
      message_id text NOT NULL,
      tags text[] NOT NULL DEFAULT '{}',
      campaign_id text COLLATE "C",
      audience_id text COLLATE "C",
      track_opens boolean NOT NULL DEFAULT false,
      track_clicks boolean NOT NULL DEFAULT false,
      scheduled_at timestamptz(3),
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      completed_at timestamptz(3)
    ) WITH (autovacuum_vacuum_scale_factor = 0.02);
    CREATE INDEX emails_by_account ON emails (account_id, id);
    -- Few among many: without them, a list of them reads everything.
    CREATE INDEX emails_by_campaign ON emails (account_id, campaign_id, id) WHERE campaign_id IS NOT NULL;
    CREATE INDEX emails_by_tag ON emails USING gin (tags) WHERE tags <> '{}';
    -- What is looked through for lost jobs.
    CREATE INDEX emails_waiting ON emails (id) WHERE status IN ('scheduled', 'queued', 'sending');
    CREATE INDEX emails_undelivered ON emails (account_id, status, id)
      WHERE status NOT IN ('sent', 'delivered', 'validated');

    -- Apart from the email, whose row is changed many times; this one never is.
    CREATE TABLE email_contents (
      email_id text COLLATE "C" PRIMARY KEY REFERENCES emails ON DELETE CASCADE,
      reply_to text[] NOT NULL DEFAULT '{}',
      headers jsonb NOT NULL DEFAULT '{}',
      html text,
      text text
    );

    CREATE TABLE email_attachments (
      email_id text COLLATE "C" NOT NULL REFERENCES emails ON DELETE CASCADE,
      position integer NOT NULL,
      filename text NOT NULL,
      content_type text NOT NULL,
      -- Not null: shown inside the HTML, where it is named by this.
      content_id text,
      content bytea NOT NULL,
      PRIMARY KEY (email_id, position)
    );
    -- Mostly images and archives, which do not become smaller.
    ALTER TABLE email_attachments ALTER COLUMN content SET STORAGE EXTERNAL;

    CREATE TABLE email_recipients (
      email_id text COLLATE "C" NOT NULL REFERENCES emails ON DELETE CASCADE,
      position integer NOT NULL,
      account_id text COLLATE "C" NOT NULL,
      kind text NOT NULL CHECK (kind IN ('to', 'cc', 'bcc')),
      name text,
      address text NOT NULL,
      address_key text COLLATE "C" NOT NULL,
      domain text COLLATE "C" NOT NULL,
      status text NOT NULL CHECK (status IN ('validated', 'queued', 'sending', 'deferred', 'accepted', 'delivered',
        'bounced', 'complained', 'failed', 'suppressed', 'canceled')),
      attempt_count integer NOT NULL DEFAULT 0,
      first_attempt_at timestamptz(3),
      next_attempt_at timestamptz(3),
      reason text,
      delayed_at timestamptz(3),
      accepted_at timestamptz(3),
      delivered_at timestamptz(3),
      opened_at timestamptz(3),
      clicked_at timestamptz(3),
      complained_at timestamptz(3),
      PRIMARY KEY (email_id, position)
    ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
    CREATE INDEX email_recipients_by_address ON email_recipients (account_id, address_key, email_id);

    -- The history of an email: what happened, when, and what the servers said.
    CREATE TABLE email_timeline (
      email_id text COLLATE "C" NOT NULL REFERENCES emails ON DELETE CASCADE,
      id bigint GENERATED ALWAYS AS IDENTITY,
      -- Null: of the email as a whole.
      position integer,
      at timestamptz(3) NOT NULL,
      type text NOT NULL,
      detail text,
      reply text,
      host text,
      PRIMARY KEY (email_id, id)
    );

    CREATE TABLE suppressions (
      id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      address text NOT NULL,
      address_key text COLLATE "C" NOT NULL,
      reason text NOT NULL CHECK (reason IN ('hard_bounce', 'complaint', 'unsubscribe', 'manual')),
      -- The email it came from. Null: the API.
      email_id text COLLATE "C",
      created_at timestamptz(3) NOT NULL,
      UNIQUE (account_id, address_key)
    );
    CREATE INDEX suppressions_by_account ON suppressions (account_id, id);

    -- What the capture transport has kept instead of sending.
    CREATE TABLE captured_messages (
      id text COLLATE "C" PRIMARY KEY,
      -- Null: nobody's, as what another program sends to the sink.
      account_id text COLLATE "C",
      email_id text COLLATE "C",
      mail_from text NOT NULL,
      recipients text[] NOT NULL,
      content bytea NOT NULL,
      created_at timestamptz(3) NOT NULL
    );
    -- Written fast and seldom read: not compressed.
    ALTER TABLE captured_messages ALTER COLUMN content SET STORAGE EXTERNAL;
    CREATE INDEX captured_messages_by_account ON captured_messages (account_id, id);
    CREATE INDEX captured_messages_by_email ON captured_messages (email_id) WHERE email_id IS NOT NULL;

    -- What came in at the return path: all that was not understood, for a person to see.
    CREATE TABLE inbound_messages (
      id text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C",
      email_id text COLLATE "C",
      mail_from text NOT NULL,
      recipients text[] NOT NULL,
      reason text NOT NULL,
      content bytea NOT NULL,
      created_at timestamptz(3) NOT NULL
    );
    -- So that a list reads the beginning of each alone.
    ALTER TABLE inbound_messages ALTER COLUMN content SET STORAGE EXTERNAL;
    CREATE INDEX inbound_messages_by_account ON inbound_messages (account_id, id);
  `)
    .execute(db)
}
