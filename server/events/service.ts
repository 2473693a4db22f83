import type { Event, EventListQuery, EventTypeDescription } from '../../contract/events.ts'
import type { Page } from '../../contract/pagination.ts'
import type { Handle } from '../database/connection.ts'
import { notFound } from '../shared/errors.ts'
import { decodeCursor, encodeCursor } from '../shared/pagination.ts'
import type { Scope } from '../shared/scope.ts'
import { selectPolled } from './polling.ts'
import { type EventRow, findEvent } from './queries.ts'
import { searchedBy } from './searched.ts'
import { describeEventTypes } from './type-catalog.ts'

/** Use cases of events. All throw DomainErrors. Every call is limited to what one mode of one account may see. */
export type EventService = {
  /**
   * Returns events, the newest first by default, the oldest first with `after`.
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
      const { rows, lookedTo } = await selectPolled(handle, scope, {
        type: query.type,
        since: query.since === undefined ? undefined : new Date(query.since),
        until: query.until === undefined ? undefined : new Date(query.until),
        searched: query.search === undefined ? undefined : searchedBy(query.search),
        after: query.after,
        cursor: decodeCursor('event', query.cursor),
        order: query.order ?? (query.after === undefined ? 'desc' : 'asc'),
        limit: query.limit,
      })
      return { data: rows.map(toEvent), nextCursor: lookedTo === null ? null : encodeCursor(lookedTo) }
    },
    async get(handle, scope, id) {
      const row = await findEvent(handle, scope, id)
      if (row === undefined) throw notFound('event', id)
      return toEvent(row)
    },
    listTypes: () => types,
  }
}

/** Returns the event as its receivers get it, plus the mode, which they get in a header. */
export function toEvent({ body, mode }: EventRow): Event {
  return { ...JSON.parse(body), mode }
}
