import { sql } from 'kysely'
import type { Storage } from '../../contract/operator.ts'
import type { Handle } from '../database/connection.ts'

/*
 * Figures of PostgreSQL about the whole database. Nothing here reads a row of a tenant.
 */

/** Returns the version of the server, and the name of the newest migration. */
export async function databaseVersions(handle: Handle): Promise<{ postgresql: string; migration: string | null }> {
  const { rows } = await sql<{ postgresql: string; migration: string | null }>`
    SELECT split_part(current_setting('server_version'), ' ', 1) AS postgresql,
      (SELECT max(name) FROM kysely_migration) AS migration
  `.execute(handle)
  const [row] = rows
  if (row === undefined) throw new Error('PostgreSQL told no version')
  return row
}

/** Returns the bytes of the database. */
export async function databaseSize(handle: Handle): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    SELECT pg_database_size(current_database())::float8 AS bytes
  `.execute(handle)
  return rows[0]?.bytes ?? 0
}

/**
 * Returns the largest tables, the largest first. Their rows are those of the last analysis, so that nothing is counted.
 * A table that is dropped meanwhile has no size.
 */
export async function tableSizes(handle: Handle, most: number): Promise<Storage['tables']> {
  const { rows } = await sql<Storage['tables'][number] & { indexBytes: number }>`
    SELECT name, rows, bytes, "indexBytes" FROM (
      SELECT
        CASE WHEN n.nspname = 'public' THEN c.relname WHEN q.name IS NOT NULL THEN 'pgboss.job (' || q.name || ')'
          ELSE n.nspname || '.' || c.relname END AS name,
        CASE WHEN c.reltuples < 0 THEN NULL ELSE c.reltuples::float8 END AS rows,
        coalesce(pg_total_relation_size(c.oid), 0)::float8 AS bytes,
        coalesce(pg_indexes_size(c.oid), 0)::float8 AS "indexBytes"
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        -- Queues with a table of their own, whose name says nothing to a reader.
        LEFT JOIN pgboss.queue q ON q.partition AND q.table_name = c.relname AND n.nspname = 'pgboss'
      WHERE c.relkind = 'r' AND n.nspname IN ('public', 'pgboss')
    ) AS t
    ORDER BY bytes DESC, name LIMIT ${most}
  `.execute(handle)
  return rows
}
