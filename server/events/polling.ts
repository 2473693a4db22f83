import type { EventTypeName } from '../../contract/event-types.ts'
import type { Handle } from '../database/connection.ts'
import { findPlace, givePositions, lastPositionBefore, type PollingPosition } from '../outbox/positions.ts'
import { DomainError } from '../shared/errors.ts'
import { firstIdAt, idAboveThoseBefore } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { type EventRow, selectPositioned, selectUnpositioned } from './queries.ts'
import type { Searched } from './searched.ts'

/** Maximum number of rounds in one request. Each gives positions to up to 1,000 events of the outbox. */
const maxRounds = 10

const beginning: PollingPosition = { position: 0, id: '' }

export type PolledEvents = {
  type?: EventTypeName | undefined
  since?: Date | undefined
  until?: Date | undefined
  /** Only events about this object, or this event alone. */
  searched?: Searched | undefined
  /** The id of an event. Only later events are returned. */
  after?: string | undefined
  /** The id of the last event that the previous page looked at. */
  cursor?: string | undefined
  order: 'asc' | 'desc'
  limit: number
}

export type PolledPage = {
  rows: EventRow[]
  /** The id of the last event that was looked at. Null: this is the last page. */
  lookedTo: string | null
}

/**
 * Returns a page of events in the order of their positions: no event can appear later before one that was returned. The
 * page includes everything committed before the call, also events that still wait for their fan-out. If more than
 * 10,000 events of the account wait, or another session keeps the account's counter locked for a second, the last of
 * them follow in later calls.
 *
 * A page with `since`, `until` or `searched` can have fewer events than `limit` without being the last. Newest first and without
 * `after`, `until` leaves out events that became visible after events that are an hour younger.
 *
 * Throws `event_not_found` when there is no event with the id `after` or `cursor` in the scope.
 *
 * @param handle Not a transaction: see `givePositions`.
 */
export async function selectPolled(handle: Handle, scope: Scope, query: PolledEvents): Promise<PolledPage> {
  const { limit } = query
  // One row more than the page shows whether there is another page.
  const { rows, lookedTo } = await selectSome(handle, scope, { ...query, limit: limit + 1 })
  if (rows.length <= limit) return { rows, lookedTo }
  return { rows: rows.slice(0, limit), lookedTo: rows[limit - 1]?.id ?? null }
}

async function selectSome(
  handle: Handle,
  scope: Scope,
  { type, since, until, searched, after, cursor, order, limit }: PolledEvents,
): Promise<PolledPage> {
  const { accountId } = scope
  const found = searched?.types === 'all' ? await findPlace(handle, scope, searched.id) : undefined
  if (found === null) return { rows: [], lookedTo: null }
  /** The position of the one event that is searched for. */
  const only = found?.position
  const afterPlace = after === undefined ? beginning : await placeOf(handle, scope, { after })
  const cursorPlace = cursor === undefined ? undefined : await placeOf(handle, scope, { cursor })
  const above = order === 'asc' && cursorPlace !== undefined ? later(afterPlace, cursorPlace) : afterPlace
  const below = order === 'desc' ? cursorPlace : undefined
  // The time in an id is never before that of the event itself.
  const sinceId = [since, searched?.since]
    .map((time) => (time === undefined ? '' : firstIdAt('event', time)))
    .reduce((a, b) => (a > b ? a : b))
  const sincePosition = sinceId === '' ? 0 : await lastPositionBefore(handle, accountId, sinceId)

  /** Returns events from before positions existed. They come before all others. */
  async function unpositioned(count: number): Promise<EventRow[]> {
    if (count === 0 || above.position > 0) return []
    return selectUnpositioned(handle, scope, {
      type,
      since,
      until,
      searched,
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
      searched,
      above: Math.max(above.position, sincePosition, (only ?? 1) - 1),
      below: only === undefined ? upTo : Math.min(only + 1, upTo ?? Number.MAX_SAFE_INTEGER),
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
  // A full page does not need events of the outbox.
  if (!isFull()) {
    await eachRound(handle, accountId, async () => {
      page = await positioned(left)
      return !isFull()
    })
  }
  return { rows: [...oldest, ...page.rows], lookedTo: page.lookedTo }

  /**
   * Returns the position below which a list with `until` begins. Not used for pollers (`after`): they look at every
   * event.
   */
  async function endOf(time: Date | undefined): Promise<number | undefined> {
    if (time === undefined || after !== undefined) return undefined
    return 1 + (await lastPositionBefore(handle, accountId, idAboveThoseBefore('event', time)))
  }
}

/** Gives positions to events of the account in the outbox, one batch after another, while `goOn` returns true. */
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
