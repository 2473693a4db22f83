import type { Event, EventListQuery, EventTypeDescription } from '../../contract/events.ts'
import type { Page } from '../../contract/pagination.ts'
import type { Clock } from '../clock.ts'
import type { Handle } from '../database/connection.ts'
import { notFound } from '../errors.ts'
import { firstIdAt } from '../ids.ts'
import { decodeCursor, pageOfRows } from '../pagination.ts'
import { firstUnsafeId } from './horizon.ts'
import { type EventFilter, type EventRow, findEvent, selectEvents, transactionsUnderway } from './queries.ts'
import { describeEventTypes } from './type-catalog.ts'

/** Use cases around events. Throws DomainErrors; every call is limited to one account. */
export type EventService = {
  /**
   * Newest first by default. Oldest first, an event is shown only when none can appear before it any
   * more: while one of our transactions is in flight, that is those made a second before it began.
   *
   * @param handle Not a transaction.
   */
  list(handle: Handle, accountId: string, query: EventListQuery): Promise<Page<Event>>
  get(handle: Handle, accountId: string, id: string): Promise<Event>
  listTypes(): EventTypeDescription[]
}

export function createEventService({ clock }: { clock: Clock }): EventService {
  const types = describeEventTypes()

  /** Reads up to where nothing can appear any more. */
  async function selectSettled(handle: Handle, accountId: string, filter: EventFilter): Promise<EventRow[]> {
    const before = { at: clock.now(), ...(await transactionsUnderway(handle)) }
    const rows = await selectEvents(handle, accountId, filter)
    const bound = firstUnsafeId(before, await transactionsUnderway(handle))
    return bound === null ? rows : rows.filter(({ id }) => id < bound)
  }

  return {
    async list(handle, accountId, query) {
      const { limit } = query
      const filter = filterOf(query)
      const select = filter.order === 'asc' ? selectSettled : selectEvents
      const rows = await select(handle, accountId, filter)
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toEvent })
    },
    async get(handle, accountId, id) {
      const row = await findEvent(handle, accountId, id)
      if (row === undefined) throw notFound('event', id)
      return toEvent(row)
    },
    listTypes: () => types,
  }
}

function filterOf({ type, since, after, cursor, order, limit }: EventListQuery): EventFilter {
  const position = decodeCursor('event', cursor)
  const filter = { type, since: since === undefined ? undefined : new Date(since), limit: limit + 1 }
  // The time in an identifier is never before the event's own, so `since` is a bound of both.
  const first = filter.since === undefined ? undefined : firstIdAt('event', filter.since)
  const bound = greatest(first, after)
  if ((order ?? (after === undefined ? 'desc' : 'asc')) === 'asc') {
    return { ...filter, order: 'asc', above: greatest(bound, position) }
  }
  return { ...filter, order: 'desc', above: bound, below: position }
}

function greatest(...ids: (string | undefined)[]): string | undefined {
  return ids.reduce((a, b) => (a === undefined || (b !== undefined && b > a) ? b : a))
}

function toEvent({ body }: EventRow): Event {
  return JSON.parse(body)
}
