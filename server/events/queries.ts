import { type Selectable, sql } from 'kysely'
import { type EventTypeName, reachesMode, sharedEventTypes } from '../../contract/event-types.ts'
import { modes } from '../../contract/mode.ts'
import type { Handle } from '../database/connection.ts'
import type { EventsTable } from '../database/tables/events.ts'
import { type EventsOfMode, lastUnpositioned, positionsOf } from '../outbox/positions.ts'
import type { Scope } from '../shared/scope.ts'

export type EventRow = Pick<Selectable<EventsTable>, 'id' | 'mode' | 'body'>

export type EventFilter = {
  type?: EventTypeName | undefined
  since?: Date | undefined
  until?: Date | undefined
  order: 'asc' | 'desc'
  limit: number
}

/** Identifiers: all are left out up to `above` and from `below`. */
type IdRange = { above: string; below?: string | undefined }

/** What a key of a scope sees: the events of its mode, and those of what both modes share. */
function reaches({ mode }: Scope) {
  return sql<boolean>`(mode = ${mode} OR type = ANY(${sharedEventTypes}::text[]))`
}

/** Those from before there were positions, by id. Samples made for test deliveries stand in no list. */
export async function selectUnpositioned(
  handle: Handle,
  scope: Scope,
  { type, since, until, order, limit, above, below }: EventFilter & IdRange,
): Promise<EventRow[]> {
  const { accountId } = scope
  const direction = sql.raw(order)
  const { rows } = await sql<EventRow>`
    SELECT id, mode, body FROM events
    -- In these words only the index by account has the order, whatever the statistics say.
    WHERE (account_id, id) > (${accountId}, ${above})
      ${below === undefined ? sql`` : sql`AND (account_id, id) < (${accountId}, ${below})`}
      AND (account_id, id) <= (${accountId}, ${lastUnpositioned})
      AND NOT sample AND ${reaches(scope)}
      ${type === undefined ? sql`` : sql`AND type = ${type}`}
      ${since === undefined ? sql`` : sql`AND created_at >= ${since}`}
      ${until === undefined ? sql`` : sql`AND created_at < ${until}`}
      -- OFFSET: one by one along the keys.
      AND NOT EXISTS (SELECT FROM outbox_rows WHERE event_id = events.id OFFSET 0)
      AND NOT EXISTS (SELECT FROM event_positions WHERE event_id = events.id OFFSET 0)
    ORDER BY account_id ${direction}, id ${direction} LIMIT ${limit}
  `.execute(handle)
  return rows
}

/** Events with a position that one statement looks through at most, for those of a span of time. */
const lookedThrough = 5_000

/**
 * Those with a position between `above` and `below`, by position. With `since` or `until` no more than 5,000 are looked
 * through: then there may be more, after or before the event `lookedTo`.
 */
export async function selectPositioned(
  handle: Handle,
  scope: Scope,
  { type, since, until, order, limit, above, below }: EventFilter & { above: number; below?: number | undefined },
): Promise<{ rows: EventRow[]; lookedTo: string | null }> {
  const isOfSpan = since !== undefined || until !== undefined
  const looked = isOfSpan ? Math.max(limit, lookedThrough) : limit
  const direction = sql.raw(order)
  // One statement, so that what was found and how far was looked are of one moment.
  const { rows } = await sql<(EventRow | { id: null }) & { looked_to: string | null }>`
    WITH looked AS MATERIALIZED (
      ${positionsOf(scope.accountId, kindsSeen(scope, type), { above, below, order, limit: looked })}
    ), found AS (
      SELECT p.position, e.id, e.mode, e.body
      FROM (SELECT position, event_id FROM looked ORDER BY position ${direction}) p
      -- One by one along the key, whatever the statistics say.
      CROSS JOIN LATERAL (SELECT id, mode, body, created_at FROM events WHERE id = p.event_id OFFSET 0) e
      WHERE true
        ${since === undefined ? sql`` : sql`AND e.created_at >= ${since}`}
        ${until === undefined ? sql`` : sql`AND e.created_at < ${until}`}
      ORDER BY p.position ${direction} LIMIT ${limit}
    )
    SELECT found.id, found.mode, found.body, looked_to
    FROM (
      SELECT (SELECT event_id FROM looked ORDER BY position ${direction} OFFSET ${looked - 1} LIMIT 1) AS looked_to
    ) AS bounds LEFT JOIN found ON true
    ORDER BY found.position ${direction}
  `.execute(handle)
  const found = rows.filter((row) => row.id !== null)
  return { rows: found, lookedTo: isOfSpan && found.length < limit ? (rows[0]?.looked_to ?? null) : null }
}

/** What a key of a scope sees, by mode and type. */
function kindsSeen({ mode }: Scope, type: EventTypeName | undefined): EventsOfMode[] {
  const seen = modes.filter((from) => type === undefined || reachesMode(type, from, mode))
  return seen.map((from) => {
    if (type !== undefined) return { mode: from, types: [type] }
    return { mode: from, types: from === mode ? 'all' : sharedEventTypes }
  })
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
