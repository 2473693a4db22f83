import { type RawBuilder, sql } from 'kysely'
import { reachesMode } from '../../contract/event-types.ts'
import type { Mode } from '../../contract/mode.ts'
import type { Handle } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import { hasCode } from '../lib/error-codes.ts'
import { DomainError } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'

/*
 * The order of polling. Each event has a position, a number from 1 within its account, in `event_positions`. Only
 * committed events get one, and the counter of the account stays locked until the positions are committed. So a reader
 * who sees a position sees every lower one that will ever exist, and can continue after it without missing any. The
 * order does not depend on clocks, processes or sessions, and no request waits for the commit of another.
 *
 * A trigger gives positions to events that leave the outbox, whichever process removes them. `givePositions` gives
 * positions to events that are still in it, for a poller that reads to the end. The SQL is in the migration
 * 0005-event-positions.
 *
 * Events that left the outbox before that migration have no position. They come before all others, in the order of
 * their ids. The last of them is stored in `settings` as `last_event_without_position`.
 */

/** The place of an event in the order of its account: by position, then, for position 0, by id. */
export type PollingPosition = {
  /** 0: the event is older than positions are. */
  position: number
  id: string
}

/** The id of the last event without a position. Empty: there is none. */
export const lastUnpositioned = sql<string>`
  coalesce((SELECT value COLLATE "C" FROM settings WHERE name = 'last_event_without_position'), '')
`

type PlaceRow = { type: string; mode: Mode; position: number | null; waits: boolean }

const placeOf = prepare<{ accountId: string; eventId: string }, PlaceRow>({ name: 'place_of_event' })`
  SELECT coalesce(p.type, e.type) AS type, coalesce(p.mode, e.mode) AS mode, p.position::float8 AS position,
    EXISTS (SELECT FROM outbox_rows WHERE event_id = ${'eventId'}) AS waits
  FROM (VALUES (1)) AS one
  -- OFFSET 0 makes the planner look up each row by its key, whatever the statistics say.
  LEFT JOIN LATERAL (SELECT * FROM event_positions WHERE event_id = ${'eventId'} OFFSET 0) p ON true
  LEFT JOIN LATERAL (SELECT * FROM events WHERE id = ${'eventId'} OFFSET 0) e ON true
  WHERE coalesce(p.account_id, e.account_id) = ${'accountId'} AND (p.position IS NOT NULL OR NOT e.sample)
`

/**
 * Returns the place of an event. Null: there is no such event in the scope, or it is a sample. An event that is still
 * in the outbox gets its position now. The last event of each mode of an account is found even after its retention.
 *
 * Throws `unavailable` when the event cannot get its position now.
 *
 * @param handle Not a transaction: see `givePositions`.
 */
export async function findPlace(
  handle: Handle,
  { accountId, mode }: Scope,
  eventId: string,
): Promise<PollingPosition | null> {
  const [found] = await placeOf(handle, { accountId, eventId })
  if (found === undefined || !reachesMode(found.type, found.mode, mode)) return null
  if (found.position !== null || !found.waits) return { position: found.position ?? 0, id: eventId }

  await givePositions(handle, accountId, { wanted: eventId })
  const [placed] = await placeOf(handle, { accountId, eventId })
  if (placed?.position == null) {
    throw new DomainError(
      'unavailable',
      `The event "${eventId}" has no place in the order of polling yet: try again.`,
      {
        retryAfterSeconds: 1,
      },
    )
  }
  return { position: placed.position, id: eventId }
}

/** Events of one mode: of all types, or of the given ones. */
export type EventsOfMode = { mode: Mode; types: readonly string[] | 'all' }

export type PositionRange = {
  /** Exclusive. */
  above: number
  /** Exclusive. Default: no upper bound. */
  below?: number | undefined
  order: 'asc' | 'desc'
  limit: number
  /** Set: also positions whose event is deleted. The caller looks at the event of each anyway. */
  withDeleted?: boolean
}

/**
 * Returns a query for the `position` and `event_id` of the first events of an account within a range of positions, in
 * order of position. For each kind it reads at most `limit` entries of an index, however many events of other kinds are
 * in between.
 */
export function positionsOf(
  accountId: string,
  kinds: readonly EventsOfMode[],
  { above, below = Number.MAX_SAFE_INTEGER, order, limit, withDeleted = false }: PositionRange,
): RawBuilder<{ position: number; event_id: string }> {
  const direction = sql.raw(order)
  const ofEvents = withDeleted ? sql`true` : hasEvent
  const whole = kinds.flatMap(({ mode, types }) => (types === 'all' ? [mode] : []))
  const byType = kinds.flatMap(({ mode, types }) => (types === 'all' ? [] : types.map((type) => ({ mode, type }))))
  // Written as row comparisons, so that only one index has this order, whatever the statistics say.
  return sql`
    SELECT position, event_id FROM (
      SELECT p.* FROM unnest(${whole}::text[]) AS kind (mode) CROSS JOIN LATERAL (
        SELECT position, event_id FROM event_positions
        WHERE (account_id, mode, position) > (${accountId}, kind.mode, ${above}::bigint)
          AND (account_id, mode, position) < (${accountId}, kind.mode, ${below}::bigint)
          AND ${ofEvents}
        ORDER BY account_id ${direction}, mode ${direction}, position ${direction} LIMIT ${limit}
      ) p
      UNION ALL
      SELECT p.* FROM unnest(
        ${byType.map(({ mode }) => mode)}::text[], ${byType.map(({ type }) => type)}::text[]
      ) AS kind (mode, type) CROSS JOIN LATERAL (
        SELECT position, event_id FROM event_positions
        WHERE (type, account_id, mode, position) > (kind.type, ${accountId}, kind.mode, ${above}::bigint)
          AND (type, account_id, mode, position) < (kind.type, ${accountId}, kind.mode, ${below}::bigint)
          AND ${ofEvents}
        ORDER BY type ${direction}, account_id ${direction}, mode ${direction}, position ${direction} LIMIT ${limit}
      ) p
    ) p
    ORDER BY position ${direction} LIMIT ${limit}
  `
}

/**
 * Excludes positions whose event is deleted and which are kept only as a place for a poller to continue: see
 * `server/background/retention.ts`.
 */
const hasEvent = sql<boolean>`EXISTS (SELECT FROM events WHERE id = event_id OFFSET 0)`

/** Returns the last position before the first event of an account whose id is `id` or greater. 0: there is none. */
export async function lastPositionBefore(handle: Handle, accountId: string, id: string): Promise<number> {
  const [row] = await positionBefore(handle, { accountId, firstId: id })
  return row?.position ?? 0
}

const positionBefore = prepare<{ accountId: string; firstId: string }, { position: number }>({
  name: 'event_position_before',
})`SELECT event_position_before(${'accountId'}, ${'firstId'})::float8 AS position`

type UnpositionedEvents = { accountId: string; above: string; wanted: string | null }

const giveInOutbox = prepare<UnpositionedEvents, { last_id: string | null }>({ name: 'give_positions_in_outbox' })`
  SELECT give_positions_in_outbox(${'accountId'}, ${'above'}, ${'wanted'}) AS last_id
`

/**
 * Gives positions to committed events of an account that are still in the outbox: up to 1,000 in order of id, from
 * `above`, and the `wanted` one. Returns the id to continue above if there may be more, otherwise null.
 *
 * It waits up to one second for others that give positions to this account, such as a fan-out during its commit. After
 * that it gives none and returns null.
 *
 * @param handle Not a transaction: the counter of the account would stay locked until its end.
 */
export async function givePositions(
  handle: Handle,
  accountId: string,
  { above = '', wanted = null }: { above?: string; wanted?: string | null } = {},
): Promise<string | null> {
  try {
    const [row] = await giveInOutbox(handle, { accountId, above, wanted })
    return row?.last_id ?? null
  } catch (error) {
    if (hasCode(error, lockNotAvailable)) return null
    throw error
  }
}

/** SQLSTATE lock_not_available. Source: PostgreSQL documentation, appendix A. */
const lockNotAvailable = '55P03'

/** How far the positions of an account are. */
export type Progress = {
  accountId: string
  /** The last position that was given. Every lower one is visible. 0: none was given. */
  position: number
  /** Whether events wait for their positions. */
  waits: boolean
}

/** Returns how far the events of some accounts are. Reads two rows of each. */
export async function selectProgress(handle: Handle, accountIds: readonly string[]): Promise<Progress[]> {
  return progressOf(handle, { accountIds })
}

const progressOf = prepare<{ accountIds: readonly string[] }, Progress>({ name: 'event_progress' })`
  SELECT a.id AS "accountId",
    coalesce((SELECT last_position FROM event_counters WHERE account_id = a.id OFFSET 0), 0)::float8 AS position,
    EXISTS (
      -- Written so that only the index by account gives the order, whatever the statistics say.
      SELECT FROM outbox_rows WHERE (account_id, event_id) > (a.id, '') AND account_id <= a.id AND NOT positioned
      ORDER BY account_id, event_id LIMIT 1
    ) AS waits
  FROM unnest(${'accountIds'}::text[]) AS a (id)
`
