import { sql } from 'kysely'
import type { Db } from '../../server/database/connection.ts'

/* The sizes of the tables of the service, and which of them retention bounds. */

/** The size of a table with its TOAST, or of all indexes of a table. */
export type Size = {
  name: string
  bytes: number
  /** True for data that customers own: it is kept until they delete it, without retention. */
  isKept: boolean
}

const keptTables = ['accounts', 'api_keys', 'audiences', 'contacts', 'settings', 'subscribers', 'webhooks']

/** Returns the sizes of all tables and of their indexes. The job tables of the queues are added up. */
export async function sizesOf(db: Db): Promise<Size[]> {
  const { rows } = await sql<{ name: string; table_bytes: number; index_bytes: number }>`
    SELECT CASE WHEN n.nspname = 'pgboss' AND c.relname ~ '^j[0-9a-f]{20}' THEN 'jobs'
        WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END AS name,
      sum(pg_table_size(c.oid))::float AS table_bytes, sum(pg_indexes_size(c.oid))::float AS index_bytes
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname IN ('public', 'pgboss')
    GROUP BY 1
  `.execute(db)
  return rows.flatMap(({ name, table_bytes, index_bytes }) => {
    const isKept = keptTables.includes(name)
    return [
      { name, bytes: table_bytes, isKept },
      { name: `${name}, indexes`, bytes: index_bytes, isKept },
    ]
  })
}
