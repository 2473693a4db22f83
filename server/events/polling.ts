import type { EventTypeName } from '../../contract/event-types.ts'
import type { Handle } from '../database/connection.ts'
import { findPlace, givePositions, lastPositionBefore, type PollingPosition } from '../outbox/positions.ts'
import { DomainError } from '../shared/errors.ts'
import { firstIdAt, idAboveThoseBefore } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { type EventRow, selectPositioned, selectUnpositioned } from './queries.ts'

/** Thousands of events in the outbox that one request looks through at most. */
const maxRounds = 10

const beginning: PollingPosition = { position: 0, id: '' }

export type PolledEvents = {
  type?: EventTypeName | undefined
  since?: Date | undefined
  until?: Date | undefined
  /** The id of an event: only those after it. */
  after?: string | undefined
  /** The id of the event up to which the page before has looked. */
  cursor?: string | undefined
  order: 'asc' | 'desc'
  limit: number
}

export type PolledPage = {
  rows: EventRow[]
  /** The id of the event up to which was looked. Null: this is the last page. */
  lookedTo: string | null
}

/**
 * A page of events in the order of their positions: none can appear later before one that was shown. All that was
 * committed before the call is there, also what still waits for its fan-out; where more than 10,000 events of the
 * account wait, or another session keeps its counter locked for a second, the last of them follow with the next calls.
 *
 * A page with `since` or `until` can have fewer than `limit` and not be the last. Newest first and without `after`,
 * `until` leaves out what became visible after events that are an hour younger.
 *
 * Throws `event_not_found` when there is no event with the id `after` or `cursor` in the scope.
 *
 * @param handle Not a transaction: see `givePositions`.
 */
export async function selectPolled(handle: Handle, scope: Scope, query: PolledEvents): Promise<PolledPage> {
  const { limit } = query
  // One more than is shown tells that there are more.
  const { rows, lookedTo } = await selectSome(handle, scope, { ...query, limit: limit + 1 })
  if (rows.length <= limit) return { rows, lookedTo }
  return { rows: rows.slice(0, limit), lookedTo: rows[limit - 1]?.id ?? null }
}

async function selectSome(
  handle: Handle,
  scope: Scope,
  { type, since, until, after, cursor, order, limit }: PolledEvents,
): Promise<PolledPage> {
  const { accountId } = scope
  const afterPlace = after === undefined ? beginning : await placeOf(handle, scope, { after })
  const cursorPlace = cursor === undefined ? undefined : await placeOf(handle, scope, { cursor })
  const above = order === 'asc' && cursorPlace !== undefined ? later(afterPlace, cursorPlace) : afterPlace
  const below = order === 'desc' ? cursorPlace : undefined
  // The time in an id is never before the event's own.
  const sinceId = since === undefined ? '' : firstIdAt('event', since)
  const sincePosition = since === undefined ? 0 : await lastPositionBefore(handle, accountId, sinceId)

  /** Those from before there were positions: they stand before all others. */
  async function unpositioned(count: number): Promise<EventRow[]> {
    if (count === 0 || above.position > 0) return []
    return selectUnpositioned(handle, scope, {
      type,
      since,
      until,
      above: above.id > sinceId ? above.id : sinceId,
      below: below?.position === 0 ? below.id : undefined,
      order,
      limit: count,
    })
  }

  async function positioned(count: number, upTo = below?.position): Promise<PolledPage> {
    if (count === 0 || below?.position === 0) return { rows: [], lookedTo: null }
    return selectPositioned(handle, scope, {
      type,
      since,
      until,
      above: Math.max(above.position, sincePosition),
      below: upTo,
      order,
      limit: count,
    })
  }

  if (order === 'desc') {
    if (below === undefined) await eachRound(handle, accountId, async () => true)
    const newest = await positioned(limit, below?.position ?? (await endOf(until)))
    if (newest.rows.length === limit || newest.lookedTo !== null) return newest
    return { rows: [...newest.rows, ...(await unpositioned(limit - newest.rows.length))], lookedTo: null }
  }
  const oldest = await unpositioned(limit)
  const left = limit - oldest.length
  let page = await positioned(left)
  const isFull = () => page.rows.length === left || page.lookedTo !== null
  // A full page needs no look at the outbox.
  if (!isFull()) {
    await eachRound(handle, accountId, async () => {
      page = await positioned(left)
      return !isFull()
    })
  }
  return { rows: [...oldest, ...page.rows], lookedTo: page.lookedTo }

  /** Where a list that is only looked at begins: a poller looks at every event. */
  async function endOf(time: Date | undefined): Promise<number | undefined> {
    if (time === undefined || after !== undefined) return undefined
    return 1 + (await lastPositionBefore(handle, accountId, idAboveThoseBefore('event', time)))
  }
}

/** Gives positions to what the account has in the outbox, some at a time, for as long as `goOn` says so after each. */
async function eachRound(handle: Handle, accountId: string, goOn: () => Promise<boolean>): Promise<void> {
  let above: string | null = ''
  for (let round = 0; round < maxRounds && above !== null; round++) {
    above = await givePositions(handle, accountId, { above })
    if (!(await goOn())) return
  }
}

async function placeOf(
  handle: Handle,
  scope: Scope,
  given: { after: string } | { cursor: string },
): Promise<PollingPosition> {
  const [[parameter, id] = ['after', '']] = Object.entries(given)
  const place = await findPlace(handle, scope, id)
  if (place !== null) return place
  throw new DomainError(
    'event_not_found',
    `There is no event "${id}" for this key: it does not exist, was deleted after its retention, or belongs to the other mode. So the events after it cannot be determined. To go on, leave out "${parameter}" and give "since" with the time of your last event and "order=asc"; without "since" you get all events.`,
  )
}

function later(a: PollingPosition, b: PollingPosition): PollingPosition {
  if (a.position !== b.position) return a.position > b.position ? a : b
  return a.id > b.id ? a : b
}
