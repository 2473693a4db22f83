import type { Event, EventListQuery, EventTypeDescription } from '../../contract/events.ts'
import type { Page } from '../../contract/pagination.ts'
import type { Handle } from '../database/connection.ts'
import { notFound } from '../errors.ts'
import { firstIdAt } from '../ids.ts'
import { decodeCursor, pageOfRows } from '../pagination.ts'
import type { Scope } from '../scope.ts'
import { selectPolled } from './polling.ts'
import { type EventRow, findEvent, selectEvents } from './queries.ts'
import { describeEventTypes } from './type-catalog.ts'

/** Use cases around events. Throws DomainErrors; every call is limited to what one mode of one account sees. */
export type EventService = {
  /**
   * Newest first by default: by id, so by the time they were made. Oldest first, and both ways round with `after`, it
   * is the order of polling: see `selectPolled`.
   *
   * @param handle Not a transaction.
   */
  list(handle: Handle, scope: Scope, query: EventListQuery): Promise<Page<Event>>
  get(handle: Handle, scope: Scope, id: string): Promise<Event>
  listTypes(): EventTypeDescription[]
}

export function createEventService(): EventService {
  const types = describeEventTypes()

  return {
    async list(handle, scope, query) {
      const rows = await selectRows(handle, scope, query)
      return pageOfRows(rows, { limit: query.limit, idOf: (row) => row.id, toItem: toEvent })
    },
    async get(handle, scope, id) {
      const row = await findEvent(handle, scope, id)
      if (row === undefined) throw notFound('event', id)
      return toEvent(row)
    },
    listTypes: () => types,
  }
}

/** One more than the page has. */
async function selectRows(handle: Handle, scope: Scope, query: EventListQuery): Promise<EventRow[]> {
  const { type, after } = query
  const order = query.order ?? (after === undefined ? 'desc' : 'asc')
  const limit = query.limit + 1
  const cursor = decodeCursor('event', query.cursor)
  const since = query.since === undefined ? undefined : new Date(query.since)
  const until = query.until === undefined ? undefined : new Date(query.until)
  if (order === 'asc' || after !== undefined) {
    return selectPolled(handle, scope, { type, since, until, after, cursor, order, limit })
  }
  // The time in an id is never before the event's own, so `since` is a bound of both.
  const above = since === undefined ? undefined : firstIdAt('event', since)
  return selectEvents(handle, scope, { type, since, until, above, below: cursor, order, limit })
}

/** The body as it is pushed, with what stands in a header there. */
function toEvent({ body, mode }: EventRow): Event {
  return { ...JSON.parse(body), mode }
}
