import { type Kysely, sql } from 'kysely'

/** Imports of contacts from CSV. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE imports (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      id text COLLATE "C" NOT NULL,
      mode text NOT NULL CHECK (mode IN ('test', 'live')),
      -- No reference: the import stays when the audience is deleted.
      audience_id text COLLATE "C" NOT NULL,
      file_name text,
      status text NOT NULL CHECK (status IN ('uploading', 'waiting', 'running', 'completed', 'failed', 'canceled')),
      conflict text NOT NULL CHECK (conflict IN ('update', 'skip')),
      contact_status text NOT NULL CHECK (contact_status IN ('active', 'unsubscribed')),
      emits_events boolean NOT NULL,
      delimiter text NOT NULL,
      encoding text NOT NULL,
      -- What all rows of the file are, as its head says. Null: nothing special.
      suppresses_as text CHECK (suppresses_as IN ('unsubscribe', 'hard_bounce')),
      -- The columns of the file in order, each with the field that it is: [{ "column", "field" }].
      columns jsonb NOT NULL,
      -- Of the file in UTF-8. Bytes up to position are done.
      bytes bigint NOT NULL DEFAULT 0,
      position bigint NOT NULL DEFAULT 0,
      rows_read bigint NOT NULL DEFAULT 0,
      rows_created bigint NOT NULL DEFAULT 0,
      rows_updated bigint NOT NULL DEFAULT 0,
      rows_skipped bigint NOT NULL DEFAULT 0,
      rows_suppressed bigint NOT NULL DEFAULT 0,
      rows_failed bigint NOT NULL DEFAULT 0,
      failure_reason text,
      created_at timestamptz(3) NOT NULL,
      started_at timestamptz(3),
      ended_at timestamptz(3),
      -- The worker that has it, until leased_until.
      lease uuid,
      leased_until timestamptz NOT NULL DEFAULT '-infinity',
      -- When something was done for it last: the longest ago is next.
      worked_at timestamptz NOT NULL,
      PRIMARY KEY (account_id, id)
    );
    CREATE INDEX imports_by_mode ON imports (account_id, mode, id);
    CREATE INDEX imports_unfinished ON imports (worked_at) WHERE status IN ('uploading', 'waiting', 'running');
    -- Of ended imports the rest of the file is deleted behind them.
    CREATE INDEX imports_ended ON imports (ended_at) WHERE ended_at IS NOT NULL;

    -- The file in UTF-8, in pieces.
    CREATE TABLE import_chunks (
      account_id text COLLATE "C" NOT NULL,
      import_id text COLLATE "C" NOT NULL,
      -- Of its first byte in the file.
      position bigint NOT NULL,
      bytes bytea NOT NULL,
      PRIMARY KEY (account_id, import_id, position),
      FOREIGN KEY (account_id, import_id) REFERENCES imports ON DELETE CASCADE
    );
    -- Compressing it would take longer than writing it.
    ALTER TABLE import_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

    CREATE TABLE import_failures (
      account_id text COLLATE "C" NOT NULL,
      import_id text COLLATE "C" NOT NULL,
      row_number bigint NOT NULL,
      reason text NOT NULL,
      cells text[] NOT NULL,
      PRIMARY KEY (account_id, import_id, row_number),
      FOREIGN KEY (account_id, import_id) REFERENCES imports ON DELETE CASCADE
    );
  `)
    .execute(db)
}
