import { type Selectable, sql } from 'kysely'
import type { EventTypeName } from '../../contract/event-types.ts'
import type { Handle } from '../database/connection.ts'
import type { EventsTable } from '../database/tables/events.ts'

export type EventRow = Pick<Selectable<EventsTable>, 'id' | 'body'>

export type EventFilter = {
  type?: EventTypeName | undefined
  since?: Date | undefined
  /** Identifiers: all are left out up to this one. */
  above?: string | undefined
  /** Identifiers: all are left out from this one. */
  below?: string | undefined
  order: 'asc' | 'desc'
  limit: number
}

/** Samples made for test deliveries are no facts and stand in no list. */
export async function selectEvents(handle: Handle, accountId: string, filter: EventFilter): Promise<EventRow[]> {
  let query = handle
    .selectFrom('events')
    .select(['id', 'body'])
    .where('account_id', '=', accountId)
    .where(sql<boolean>`NOT sample`)
  if (filter.type !== undefined) query = query.where('type', '=', filter.type)
  if (filter.since !== undefined) query = query.where('created_at', '>=', filter.since)
  if (filter.above !== undefined) query = query.where('id', '>', filter.above)
  if (filter.below !== undefined) query = query.where('id', '<', filter.below)
  return query.orderBy('id', filter.order).limit(filter.limit).execute()
}

export async function findEvent(handle: Handle, accountId: string, id: string): Promise<EventRow | undefined> {
  return handle
    .selectFrom('events')
    .select(['id', 'body'])
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .executeTakeFirst()
}

/** What may still commit, at one moment. */
export type Underway = {
  /** Milliseconds since the oldest transaction of ours in flight began; null when there is none. */
  oldestAgeMs: number | null
  /** Grows whenever any transaction begins to write. */
  nextTransactionId: string
}

/**
 * Looks at the transactions that may append events, in whatever process: those of sessions with the
 * name this one has. So every pool that events are appended through must have the same name and
 * database role, and others, such as those of a backup, hold no poller up.
 *
 * @param handle Not a transaction: inside one, PostgreSQL answers the same again.
 */
export async function transactionsUnderway(handle: Handle): Promise<Underway> {
  const { rows } = await sql<{ age_ms: number | null; next_id: string }>`
    SELECT
      (
        SELECT (extract(epoch FROM clock_timestamp() - min(xact_start)) * 1000)::float8
        FROM pg_stat_activity
        WHERE datname = current_database()
          AND application_name = current_setting('application_name')
          AND state <> 'idle'
          AND xact_start IS NOT NULL
          AND pid <> pg_backend_pid()
      ) AS age_ms,
      pg_snapshot_xmax(pg_current_snapshot())::text AS next_id
  `.execute(handle)
  const [row] = rows
  if (row === undefined) throw new Error('PostgreSQL answered no row about its transactions')
  return { oldestAgeMs: row.age_ms, nextTransactionId: row.next_id }
}
