import { type Kysely, sql } from 'kysely'

/**
 * Requests to the API. There is no reference to `accounts`: its check for each request would cost more than the rest of
 * the row, and rows are deleted after a week.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE request_logs (
      account_id text COLLATE "C" NOT NULL,
      mode text NOT NULL,
      -- Holds the time of the request.
      id text COLLATE "C" NOT NULL,
      key_id text COLLATE "C" NOT NULL,
      -- The name at that time: the key may be deleted later.
      key_name text NOT NULL,
      method text NOT NULL,
      route text NOT NULL,
      path text NOT NULL,
      -- 0: the client disconnected before it had the whole answer.
      status smallint NOT NULL,
      duration_ms real NOT NULL,
      error_code text,
      ip_address text,
      -- JSON, of requests that failed.
      request_body text,
      error_details text,
      PRIMARY KEY (account_id, mode, id)
    );
    -- One for each filter of the list. Most requests succeed: fewer indexes of these make writing cheaper.
    CREATE INDEX request_logs_by_key ON request_logs (account_id, mode, key_id, id);
    CREATE INDEX request_logs_failed ON request_logs (account_id, mode, status, id)
      WHERE status < 200 OR status > 299;
    CREATE INDEX request_logs_failed_by_key ON request_logs (account_id, mode, key_id, status, id)
      WHERE status < 200 OR status > 299;
    -- Rows are only added and deleted, so a vacuum is due by deleted rows alone: 1 % of them instead of 20 %.
    ALTER TABLE request_logs SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.05);

    -- Bytes that were written to request_logs on a day, in UTC. Also says whose rows retention looks for.
    CREATE TABLE request_log_days (
      account_id text COLLATE "C" NOT NULL,
      mode text NOT NULL,
      day date NOT NULL,
      bytes bigint NOT NULL,
      PRIMARY KEY (account_id, mode, day)
    ) WITH (fillfactor = 50);
  `)
    .execute(db)
}
