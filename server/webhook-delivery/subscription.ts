import { reachesMode } from '../../contract/event-types.ts'
import type { Mode } from '../../contract/mode.ts'

/**
 * Returns true if a webhook receives an event. The fan-out and recoveries share this rule, so that a recovery sends
 * what the webhook would have received had it been enabled.
 */
export function receives(
  webhook: { events: readonly string[]; mode: Mode },
  event: { type: string; mode: Mode },
): boolean {
  return webhook.events.includes(event.type) && reachesMode(event.type, event.mode, webhook.mode)
}
