import { type EventTypeName, eventType, eventTypeNames } from '../../contract/event-types.ts'
import { searchedKinds } from '../../contract/events.ts'
import { idPrefixes } from '../../contract/ids.ts'
import { timeOf } from '../shared/ids.ts'

/** Milliseconds that the clocks of two processes may differ, so that an event seems older than what it is about. */
const clockSkewMs = 60_000

/** The object that events are searched for by its id. */
export type Searched = {
  id: string
  /** Types of the events that can be about it. `all`: it is an event. */
  types: readonly EventTypeName[] | 'all'
  /** A part of the body that an event about it has, and no other. */
  text: string
  /** No event about it is older. */
  since: Date
}

/**
 * Returns how events about an object are recognised. Their bodies are JSON without spaces, in which quotes within a
 * text are escaped: no text that a client has chosen can be taken for the field.
 *
 * @param id An identifier of one of `searchedKinds`.
 */
export function searchedBy(id: string): Searched {
  const kind = searchedKinds.find((known) => id.startsWith(`${idPrefixes[known]}_`))
  if (kind === undefined) throw new Error(`events are not searched for by "${id}"`)
  const since = new Date(timeOf(id).getTime() - clockSkewMs)
  if (kind === 'event') return { id, types: 'all', text: `"id":"${id}"`, since }
  const field = `${kind}Id`
  const types = eventTypeNames.filter((name) => Object.hasOwn(eventType(name).data.shape, field))
  return { id, types, text: `"${field}":"${id}"`, since }
}
