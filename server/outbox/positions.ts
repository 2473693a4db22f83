import type { Handle } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import { hasCode } from '../errno.ts'
import { DomainError } from '../errors.ts'
import { firstIdAt } from '../ids.ts'

/*
 * The order of polling. Each event has a position, a number from 1 within its account, in `event_positions`. It is
 * given to committed events only, and the counter of the account is locked until that commits. So a reader who sees a
 * position sees every lower one there will ever be, and can go on after it without missing any. No clock, process or
 * session matters, and no request waits for the commit of another.
 *
 * A trigger gives positions to the events that leave the outbox, whatever process takes them out. `givePositions`
 * gives them to those that are still in it, for a poller that reads to the end. The SQL is in the migration
 * 0004-event-positions.
 *
 * Events that left the outbox before that migration have no position. They come before all others, in the order of
 * their ids. The last of them is in `settings`, as `last_event_without_position`.
 */

/** Where an event stands among those of its account: by position, and by id where that is 0. */
export type Place = {
  /** 0: it is from before there were positions. */
  position: number
  id: string
}

type PlaceRow = { position: number | null; waits: boolean }

const placeOf = prepare<{ accountId: string; eventId: string }, PlaceRow>({ name: 'place_of_event' })`
  SELECT p.position::float8 AS position, EXISTS (SELECT FROM outbox WHERE event_id = ${'eventId'}) AS waits
  FROM (VALUES (1)) AS one
  LEFT JOIN event_positions p ON p.account_id = ${'accountId'} AND p.event_id = ${'eventId'}
  WHERE p.position IS NOT NULL OR EXISTS (
    SELECT FROM events WHERE id = ${'eventId'} AND account_id = ${'accountId'} AND NOT sample
  )
`

/**
 * Where an event stands. Null when the account has no such event, or it is a sample. One that is still in the outbox
 * is given its position. The last event of an account is known here also after its retention.
 *
 * Throws `unavailable` when it cannot be given its position now.
 *
 * @param handle Not a transaction: see `givePositions`.
 */
export async function findPlace(handle: Handle, accountId: string, eventId: string): Promise<Place | null> {
  const [found] = await placeOf(handle, { accountId, eventId })
  if (found === undefined) return null
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

/** The last position before the first event of an account whose id is of `at` or later; 0 when there is none before. */
export async function lastPositionBefore(handle: Handle, accountId: string, at: Date): Promise<number> {
  const [row] = await positionBefore(handle, { accountId, firstId: firstIdAt('event', at) })
  return row?.position ?? 0
}

const positionBefore = prepare<{ accountId: string; firstId: string }, { position: number }>({
  name: 'event_position_before',
})`SELECT event_position_before(${'accountId'}, ${'firstId'})::float8 AS position`

type Waiting = { accountId: string; above: string; wanted: string | null }

const giveInOutbox = prepare<Waiting, { last_id: string | null }>({ name: 'give_positions_in_outbox' })`
  SELECT give_positions_in_outbox(${'accountId'}, ${'above'}, ${'wanted'}) AS last_id
`

/**
 * Gives positions to committed events of an account that are still in the outbox: up to 1,000, in the order of their
 * ids from `above`, and to the one that is `wanted`. Returns the id to go on above when there may be more, else null.
 *
 * It waits for others that give positions to this account, such as a fan-out during its commit, for a second at most.
 * After that it gives none and returns null.
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

/** Source: PostgreSQL, appendix A. */
const lockNotAvailable = '55P03'
