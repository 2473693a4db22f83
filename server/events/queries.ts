import { type Selectable, sql } from 'kysely'
import { type EventTypeName, reachesMode, sharedEventTypes } from '../../contract/event-types.ts'
import { type Mode, modes } from '../../contract/mode.ts'
import type { Handle } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import type { EventsTable } from '../database/tables/events.ts'
import { type EventsOfMode, lastUnpositioned, positionsOf } from '../outbox/positions.ts'
import type { Scope } from '../shared/scope.ts'
import type { Searched } from './searched.ts'

export type EventRow = Pick<Selectable<EventsTable>, 'id' | 'mode' | 'body'>

/** An event with its position within its account. */
export type PositionedRow = EventRow & { position: number }

export type EventFilter = {
  type?: EventTypeName | undefined
  since?: Date | undefined
  until?: Date | undefined
  searched?: Searched | undefined
  order: 'asc' | 'desc'
  limit: number
}

/** Exclusive bounds of ids. */
type IdRange = { above: string; below?: string | undefined }

/** Matches the events that a key of a scope may see: those of its mode, and those that both modes share. */
function reaches({ mode }: Scope) {
  return sql<boolean>`(mode = ${mode} OR type = ANY(${sharedEventTypes}::text[]))`
}

/** Returns events from before positions existed, in order of id. Samples are in no list. */
export async function selectUnpositioned(
  handle: Handle,
  scope: Scope,
  { type, since, until, searched, order, limit, above, below }: EventFilter & IdRange,
): Promise<EventRow[]> {
  const { accountId } = scope
  const direction = sql.raw(order)
  const { rows } = await sql<EventRow>`
    SELECT id, mode, body FROM events
    -- Written as row comparisons, so that only the index by account has this order, whatever the statistics say.
    WHERE (account_id, id) > (${accountId}, ${above})
      ${below === undefined ? sql`` : sql`AND (account_id, id) < (${accountId}, ${below})`}
      AND (account_id, id) <= (${accountId}, ${lastUnpositioned})
      AND NOT sample AND ${reaches(scope)}
      ${type === undefined ? sql`` : sql`AND type = ${type}`}
      ${since === undefined ? sql`` : sql`AND created_at >= ${since}`}
      ${until === undefined ? sql`` : sql`AND created_at < ${until}`}
      ${searched === undefined ? sql`` : sql`AND ${isAbout(searched)}`}
      -- OFFSET 0 makes the planner look up each row by its key.
      AND NOT EXISTS (SELECT FROM outbox_rows WHERE event_id = events.id OFFSET 0)
      AND NOT EXISTS (SELECT FROM event_positions WHERE event_id = events.id OFFSET 0)
    ORDER BY account_id ${direction}, id ${direction} LIMIT ${limit}
  `.execute(handle)
  return rows
}

function isAbout({ text }: Searched) {
  return sql<boolean>`strpos(body, ${text}) > 0`
}

/** Events with a position that are looked through for a time range at first, for each event of the page. */
const lookedThroughFirst = 10
/** Maximum number of events with a position that one statement looks through for a time range or a search. */
const lookedThrough = 5_000
/** Maximum number of entries that a search reads of all the kinds of events that it looks through together. */
const readForSearch = 10_000

/**
 * Returns events with a position between `above` and `below`, in order of position. With `since`, `until` or `searched`
 * it looks through at most 5,000 events. If it stops there, `lookedTo` is the last event it looked at, and there may be
 * more.
 */
export async function selectPositioned(
  handle: Handle,
  scope: Scope,
  filter: EventFilter & PositionBounds,
): Promise<PositionedPage> {
  const { type, since, until, searched, limit } = filter
  const kinds = kindsSought(scope, type, searched)
  if (searched !== undefined) {
    const looked = Math.max(limit, Math.min(lookedThrough, partOf(readForSearch, kinds)))
    return lookThrough(handle, scope, { ...filter, kinds, looked })
  }
  if (since === undefined && until === undefined) {
    const { rows } = await lookThrough(handle, scope, { ...filter, kinds, looked: limit })
    return { rows, lookedTo: null }
  }
  // Nearly all of the first ones are in the range, unless one hour has many.
  const page = await lookThrough(handle, scope, { ...filter, kinds, looked: lookedThroughFirst * limit })
  if (page.rows.length === limit || page.lookedTo === null) return page
  return lookThrough(handle, scope, { ...filter, kinds, looked: Math.max(lookedThrough, limit) })
}

type PositionBounds = { above: number; below?: number | undefined }
type PositionedPage = { rows: PositionedRow[]; lookedTo: string | null }

/** Looks through the first `looked` events of the given kinds. `lookedTo` is null when there are not so many. */
async function lookThrough(
  handle: Handle,
  scope: Scope,
  {
    kinds,
    looked,
    since,
    until,
    searched,
    order,
    limit,
    above,
    below,
  }: EventFilter & PositionBounds & { kinds: readonly EventsOfMode[]; looked: number },
): Promise<PositionedPage> {
  const direction = sql.raw(order)
  // One statement, so that the events and `lookedTo` are of the same snapshot.
  const { rows } = await sql<(PositionedRow | { id: null }) & { looked_to: string | null }>`
    WITH looked AS MATERIALIZED (
      ${positionsOf(scope.accountId, kinds, { above, below, order, limit: looked, withDeleted: looked > limit })}
    ), found AS (
      SELECT p.position, e.id, e.mode, e.body
      FROM (SELECT position, event_id FROM looked ORDER BY position ${direction}) p
      -- OFFSET 0 makes the planner look up each event by its primary key, whatever the statistics say.
      CROSS JOIN LATERAL (SELECT id, mode, body, created_at FROM events WHERE id = p.event_id OFFSET 0) e
      WHERE true
        ${since === undefined ? sql`` : sql`AND e.created_at >= ${since}`}
        ${until === undefined ? sql`` : sql`AND e.created_at < ${until}`}
        ${searched === undefined ? sql`` : sql`AND ${isAbout(searched)}`}
      ORDER BY p.position ${direction} LIMIT ${limit}
    )
    SELECT found.id, found.mode, found.body, found.position::float8 AS position, looked_to
    FROM (
      SELECT (SELECT event_id FROM looked ORDER BY position ${direction} OFFSET ${looked - 1} LIMIT 1) AS looked_to
    ) AS bounds LEFT JOIN found ON true
    ORDER BY found.position ${direction}
  `.execute(handle)
  const found = rows.filter((row) => row.id !== null)
  return { rows: found, lookedTo: found.length < limit ? (rows[0]?.looked_to ?? null) : null }
}

/** Types of one mode, beyond which passing over the others costs less than a look for each type. */
const fewTypes = 4

/** Returns the modes and types of the events that a key of a scope may see and that can be about what is searched. */
function kindsSought(scope: Scope, type: EventTypeName | undefined, searched: Searched | undefined): EventsOfMode[] {
  const about = searched?.types ?? 'all'
  if (type !== undefined) return kindsSeen(scope, about === 'all' || about.includes(type) ? [type] : [])
  if (about === 'all' || about.length <= fewTypes || about.some((one) => sharedEventTypes.includes(one))) {
    return kindsSeen(scope, about)
  }
  return [{ mode: scope.mode, types: 'all' }]
}

/** Returns the modes and types of the events that a key of a scope may see, of all types or of some. */
function kindsSeen({ mode }: Scope, types: readonly EventTypeName[] | 'all'): EventsOfMode[] {
  if (types === 'all') return modes.map((from) => ({ mode: from, types: from === mode ? 'all' : sharedEventTypes }))
  return modes.map((from) => ({ mode: from, types: types.filter((type) => reachesMode(type, from, mode)) }))
}

/** Returns the part of `count` for each kind of events, where each is read by an index of its own. */
function partOf(count: number, kinds: readonly EventsOfMode[]): number {
  const parts = kinds.reduce((sum, { types }) => sum + (types === 'all' ? 1 : types.length), 0)
  return Math.floor(count / Math.max(parts, 1))
}

const selectEvent = prepare<{ accountId: string; id: string; mode: Mode; sharedTypes: readonly string[] }, EventRow>({
  name: 'find_event',
})`
  SELECT id, mode, body FROM events
  WHERE account_id = ${'accountId'} AND id = ${'id'}
    AND (mode = ${'mode'} OR NOT sample AND type = ANY(${'sharedTypes'}::text[]))
`

/**
 * Returns an event, or undefined. A sample belongs to its webhook: the other mode does not see it, whatever its type.
 */
export async function findEvent(handle: Handle, { accountId, mode }: Scope, id: string): Promise<EventRow | undefined> {
  const [row] = await selectEvent(handle, { accountId, id, mode, sharedTypes: sharedEventTypes })
  return row
}
