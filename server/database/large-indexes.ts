import { sql } from 'kysely'
import type { Logger } from 'pino'
import type { Handle } from './connection.ts'

/*
 * Indexes of tables that may be large when they are migrated. Creating one blocks all writes to its table, so a
 * migration creates it only if the table is small. Otherwise the service works without it, with slower queries, and
 * logs at its start what to do.
 */

type LargeIndex = {
  table: string
  columns: string
  /** The queries that are slow without it. */
  purpose: string
  /** The index that it replaces. Default: none. */
  replaces?: string
}

const largeIndexes: Readonly<Record<string, LargeIndex>> = {
  emails_by_mode: {
    table: 'emails',
    columns: '(account_id, mode, id)',
    purpose: 'lists of emails for keys of the mode that has sent few',
    replaces: 'emails_by_account',
  },
  suppressions_by_reason: {
    table: 'suppressions',
    columns: '(account_id, reason, id)',
    purpose: 'lists of suppressed addresses by reason',
  },
  // The expressions stand in server/subscribers/search.ts too.
  subscribers_by_name: {
    table: 'subscribers',
    columns: `(account_id, lower(coalesce(first_name || ' ', '') || coalesce(last_name, '')) COLLATE "C", id)`,
    purpose: 'searches for people',
  },
  subscribers_by_last_name: {
    table: 'subscribers',
    columns: '(account_id, lower(last_name) COLLATE "C", id)',
    purpose: 'searches for people',
  },
  emails_bounced: {
    table: 'emails',
    columns: `(account_id, domain_id, id) WHERE status = 'bounced' AND domain_id IS NOT NULL`,
    purpose: 'counts of what bounced of a domain',
  },
}

/** A table up to this size is read in about half a second. Bytes. */
const smallTable = 128 * 1024 * 1024

/**
 * Creates an index in a migration and drops the index that it replaces, if the table is small. Otherwise does nothing.
 */
export async function createUnlessLarge(handle: Handle, name: keyof typeof largeIndexes): Promise<void> {
  const { table, columns, replaces } = largeIndexes[name] as LargeIndex
  const { rows } = await sql<{ isSmall: boolean }>`
    SELECT pg_table_size(${table}::regclass) <= ${smallTable} AS "isSmall"
  `.execute(handle)
  if (!rows[0]?.isSmall) return
  await sql.raw(`CREATE INDEX ${name} ON ${table} ${columns}`).execute(handle)
  if (replaces !== undefined) await sql.raw(`DROP INDEX ${replaces}`).execute(handle)
}

/** Logs which indexes are missing or unfinished, and the statements that create them while the service runs. */
export async function warnOfMissingIndexes(handle: Handle, logger: Pick<Logger, 'warn'>): Promise<void> {
  const { rows } = await sql<{ name: string; schema: string; isUnfinished: boolean }>`
    SELECT name, current_schema() AS schema, i.indexrelid IS NOT NULL AS "isUnfinished"
    FROM unnest(${Object.keys(largeIndexes)}::text[]) AS name
    LEFT JOIN pg_index i ON i.indexrelid = to_regclass(name)
    WHERE i.indisvalid IS NOT TRUE
      -- Skips an index that is being created at this moment.
      AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)
  `.execute(handle)
  for (const { name, schema, isUnfinished } of rows) {
    const { table, columns, purpose, replaces } = largeIndexes[name] as LargeIndex
    const statements = [
      ...(isUnfinished ? [`DROP INDEX CONCURRENTLY ${schema}.${name};`] : []),
      `CREATE INDEX CONCURRENTLY ${name} ON ${schema}.${table} ${columns};`,
      ...(replaces === undefined ? [] : [`DROP INDEX CONCURRENTLY IF EXISTS ${schema}.${replaces};`]),
    ]
    const state = isUnfinished ? 'was left unfinished' : 'is missing: a migration does not make it of a large table'
    logger.warn(
      `the index ${name} ${state}, so ${purpose} are slow; run these statements one at a time with a client of PostgreSQL, while the service works: ${statements.join(' ')}`,
    )
  }
}
