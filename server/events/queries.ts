import { type Selectable, sql } from 'kysely'
import { type EventTypeName, sharedEventTypes } from '../../contract/event-types.ts'
import type { Handle } from '../database/connection.ts'
import type { EventsTable } from '../database/tables/events.ts'
import type { Scope } from '../scope.ts'

export type EventRow = Pick<Selectable<EventsTable>, 'id' | 'mode' | 'body'>

export type EventFilter = {
  type?: EventTypeName | undefined
  since?: Date | undefined
  until?: Date | undefined
  order: 'asc' | 'desc'
  limit: number
}

/** Identifiers: all are left out up to `above` and from `below`. */
type IdRange = { above?: string | undefined; below?: string | undefined }

/** What a key of a scope sees: the events of its mode, and those of what both modes share. */
function reaches({ mode }: Scope) {
  return sql<boolean>`(mode = ${mode} OR type = ANY(${sharedEventTypes}::text[]))`
}

/**
 * By id, positioned or not. Samples made for test deliveries are no facts and stand in no list.
 *
 * @param onlyUnpositioned Only those from before there were positions.
 */
export async function selectEvents(
  handle: Handle,
  scope: Scope,
  {
    type,
    since,
    until,
    order,
    limit,
    above,
    below,
    onlyUnpositioned = false,
  }: EventFilter & IdRange & { onlyUnpositioned?: boolean },
): Promise<EventRow[]> {
  let query = handle
    .selectFrom('events')
    .select(['id', 'mode', 'body'])
    .where('account_id', '=', scope.accountId)
    .where(sql<boolean>`NOT sample`)
    .where(reaches(scope))
  if (type !== undefined) query = query.where('type', '=', type)
  if (since !== undefined) query = query.where('created_at', '>=', since)
  if (until !== undefined) query = query.where('created_at', '<', until)
  if (above !== undefined) query = query.where('id', '>', above)
  if (below !== undefined) query = query.where('id', '<', below)
  if (onlyUnpositioned) {
    query = query
      .where(
        'id',
        '<=',
        sql<string>`(SELECT value COLLATE "C" FROM settings WHERE name = 'last_event_without_position')`,
      )
      // OFFSET: one by one along the keys, whatever the statistics say.
      .where(sql<boolean>`NOT EXISTS (SELECT FROM outbox WHERE event_id = events.id OFFSET 0)`)
      .where(sql<boolean>`NOT EXISTS (
        SELECT FROM event_positions p WHERE p.account_id = events.account_id AND p.event_id = events.id OFFSET 0
      )`)
  }
  return query.orderBy('id', order).limit(limit).execute()
}

/** By position: those after `above` and before `below`. */
export async function selectByPosition(
  handle: Handle,
  scope: Scope,
  { type, since, until, order, limit, above, below }: EventFilter & { above: number; below?: number | undefined },
): Promise<EventRow[]> {
  const direction = sql.raw(order === 'asc' ? 'ASC' : 'DESC')
  const { rows } = await sql<EventRow>`
    SELECT e.id, e.mode, e.body
    FROM (
      SELECT position, event_id FROM event_positions
      WHERE account_id = ${scope.accountId} AND position > ${above}
        ${below === undefined ? sql`` : sql`AND position < ${below}`}
        ${type === undefined ? sql`` : sql`AND type = ${type}`}
      ORDER BY position ${direction}
    ) p
    -- One by one along the key, whatever the statistics say.
    CROSS JOIN LATERAL (SELECT id, mode, type, body, created_at FROM events WHERE id = p.event_id OFFSET 0) e
    WHERE ${reaches(scope)}
      ${since === undefined ? sql`` : sql`AND e.created_at >= ${since}`}
      ${until === undefined ? sql`` : sql`AND e.created_at < ${until}`}
    ORDER BY p.position ${direction} LIMIT ${limit}
  `.execute(handle)
  return rows
}

/** A sample belongs to its webhook: of whatever type, the other mode does not see it. */
export async function findEvent(handle: Handle, scope: Scope, id: string): Promise<EventRow | undefined> {
  return handle
    .selectFrom('events')
    .select(['id', 'mode', 'body'])
    .where('account_id', '=', scope.accountId)
    .where('id', '=', id)
    .where(sql<boolean>`(mode = ${scope.mode} OR NOT sample AND ${reaches(scope)})`)
    .executeTakeFirst()
}
