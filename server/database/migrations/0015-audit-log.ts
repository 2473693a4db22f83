import { type Kysely, sql } from 'kysely'

/**
 * The audit log, and what keys may be limited to. The keys that are there came from the command line. Columns with
 * constant defaults rewrite nothing.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE api_keys
      ADD COLUMN created_by_type text NOT NULL DEFAULT 'command_line',
      ADD COLUMN created_by_id text,
      ADD COLUMN expires_at timestamptz(3),
      ADD COLUMN allowed_addresses text[] NOT NULL DEFAULT '{}',
      ADD COLUMN last_used_at timestamptz(3),
      ADD COLUMN last_used_from text;

    CREATE TABLE audit_log (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      id text COLLATE "C" NOT NULL,
      created_at timestamptz(3) NOT NULL,
      action text NOT NULL,
      actor_type text NOT NULL,
      actor_id text,
      -- The name at that time: the actor may be renamed or deleted later.
      actor_name text NOT NULL,
      target_type text NOT NULL,
      target_id text NOT NULL,
      target_name text,
      ip_address text,
      details jsonb NOT NULL DEFAULT '{}',
      PRIMARY KEY (account_id, id)
    );
    -- For retention, which deletes the old entries of all accounts.
    CREATE INDEX audit_log_by_time ON audit_log (created_at);
  `)
    .execute(db)
}
