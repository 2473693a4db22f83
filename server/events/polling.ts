import type { EventTypeName } from '../../contract/event-types.ts'
import type { Handle } from '../database/connection.ts'
import { DomainError } from '../errors.ts'
import { firstIdAt } from '../ids.ts'
import { findPlace, givePositions, lastPositionBefore, type Place } from '../outbox/positions.ts'
import type { Scope } from '../scope.ts'
import { type EventRow, selectByPosition, selectEvents } from './queries.ts'

/** Thousands of events in the outbox that one request looks through at most. */
const maxRounds = 10

const beginning: Place = { position: 0, id: '' }

export type PolledEvents = {
  type?: EventTypeName | undefined
  since?: Date | undefined
  until?: Date | undefined
  /** The id of an event: only those after it. */
  after?: string | undefined
  /** The id of the last event of the page before. */
  cursor?: string | undefined
  order: 'asc' | 'desc'
  limit: number
}

/**
 * Events in the order of their positions: none can appear later before one that was shown. All that was committed
 * before the call is there, also what still waits for its fan-out; where more than 10,000 events of the account wait,
 * the last of them follow with the next calls.
 *
 * Throws `event_not_found` when the account has no event with the id `after` or `cursor`.
 *
 * @param handle Not a transaction: see `givePositions`.
 */
export async function selectPolled(
  handle: Handle,
  scope: Scope,
  { type, since, until, after, cursor, order, limit }: PolledEvents,
): Promise<EventRow[]> {
  const { accountId } = scope
  const afterPlace = after === undefined ? beginning : await placeOf(handle, accountId, after)
  const cursorPlace = cursor === undefined ? undefined : await placeOf(handle, accountId, cursor)
  const above = order === 'asc' && cursorPlace !== undefined ? later(afterPlace, cursorPlace) : afterPlace
  const below = order === 'desc' ? cursorPlace : undefined
  const sincePosition = since === undefined ? 0 : await lastPositionBefore(handle, accountId, since)
  // The time in an id is never before the event's own.
  const sinceId = since === undefined ? '' : firstIdAt('event', since)

  /** Those from before there were positions: they stand before all others. */
  async function unpositioned(count: number): Promise<EventRow[]> {
    if (count === 0 || above.position > 0) return []
    return selectEvents(handle, scope, {
      type,
      since,
      until,
      above: above.id > sinceId ? above.id : sinceId,
      below: below?.position === 0 ? below.id : undefined,
      onlyUnpositioned: true,
      order,
      limit: count,
    })
  }

  async function positioned(count: number): Promise<EventRow[]> {
    if (count === 0 || below?.position === 0) return []
    return selectByPosition(handle, scope, {
      type,
      since,
      until,
      above: Math.max(above.position, sincePosition),
      below: below?.position,
      order,
      limit: count,
    })
  }

  if (order === 'desc') {
    if (below === undefined) await eachRound(handle, accountId, async () => true)
    const newest = await positioned(limit)
    return [...newest, ...(await unpositioned(limit - newest.length))]
  }
  const oldest = await unpositioned(limit)
  const left = limit - oldest.length
  let rows = await positioned(left)
  // A full page needs no look at the outbox.
  if (rows.length < left) {
    await eachRound(handle, accountId, async () => {
      rows = await positioned(left)
      return rows.length < left
    })
  }
  return [...oldest, ...rows]
}

/** Gives positions to what the account has in the outbox, some at a time, for as long as `goOn` says so after each. */
async function eachRound(handle: Handle, accountId: string, goOn: () => Promise<boolean>): Promise<void> {
  let above: string | null = ''
  for (let round = 0; round < maxRounds && above !== null; round++) {
    above = await givePositions(handle, accountId, { above })
    if (!(await goOn())) return
  }
}

async function placeOf(handle: Handle, accountId: string, id: string): Promise<Place> {
  const place = await findPlace(handle, accountId, id)
  if (place !== null) return place
  throw new DomainError(
    'event_not_found',
    `There is no event "${id}" in this account, or it is not kept any more, so what came after it cannot be told. To go on, leave out "after" and give "since" with the time of your last event and "order=asc"; without "since" you get all events that are kept.`,
  )
}

function later(a: Place, b: Place): Place {
  if (a.position !== b.position) return a.position > b.position ? a : b
  return a.id > b.id ? a : b
}
