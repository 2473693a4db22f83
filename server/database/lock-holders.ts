import { sql } from 'kysely'
import type { Db } from './connection.ts'

type Holder = {
  pid: number
  /** Null: this user may not see it. */
  name: string | null
  seconds: number | null
  tables: string[]
}

/** Maximum number of sessions in the message. */
const maxHolders = 3

/**
 * Describes the sessions that have held locks on the tables of this service for `heldMs` or longer: process ids, names,
 * ages and tables. It leaves out their queries, which may contain data.
 */
export async function tellLockHolders(db: Db, heldMs: number): Promise<string> {
  const { rows } = await sql<Holder>`
    SELECT a.pid, coalesce(nullif(a.application_name, ''), a.backend_type) AS name,
      extract(epoch FROM clock_timestamp() - a.xact_start)::int AS seconds,
      array_agg(DISTINCT c.relname::text ORDER BY c.relname::text) AS tables
    FROM pg_locks l
    JOIN pg_stat_activity a ON a.pid = l.pid
    JOIN pg_class c ON c.oid = l.relation AND c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
    WHERE l.locktype = 'relation' AND l.granted AND a.datname = current_database() AND a.pid <> pg_backend_pid()
      -- NULL if this user may not see it.
      AND (a.xact_start IS NULL OR a.xact_start <= clock_timestamp() - make_interval(secs => ${heldMs / 1000}))
    GROUP BY a.pid, a.application_name, a.backend_type, a.xact_start
    ORDER BY a.xact_start NULLS LAST LIMIT ${maxHolders}
  `.execute(db)
  if (rows.length === 0) return 'the session that held it has ended by now'
  return rows.map(tellHolder).join(', and ')
}

function tellHolder({ pid, name, seconds, tables }: Holder): string {
  const who = name === null ? `session ${pid}` : `session ${pid} (${name})`
  const since = seconds === null ? '' : ` for ${seconds} s`
  const [first, ...others] = tables
  return `${who} has held a lock on "${first}"${others.length === 0 ? '' : ` and ${others.length} more tables`}${since}`
}
