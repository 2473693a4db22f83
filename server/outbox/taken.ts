import type { Handle } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'

const findWaiting = prepare<{ eventId: string }, { event_id: string }>({ name: 'find_waiting_event' })`
  SELECT event_id FROM outbox_rows WHERE event_id = ${'eventId'} AND lease IS NULL
`

/** Returns true once the fan-out has taken an event: it has left the outbox, or a process has its deliveries in hand. */
export async function isTaken(handle: Handle, eventId: string): Promise<boolean> {
  const found = await findWaiting(handle, { eventId })
  return found.length === 0
}
