import { reachesMode } from '../../contract/event-types.ts'
import type { Mode } from '../../contract/mode.ts'

/**
 * Whether a webhook is sent an event. The one rule for what is fanned out and for what is recovered, so that a
 * recovery sends what the webhook would have been sent had it been enabled.
 */
export function receives(
  webhook: { events: readonly string[]; mode: Mode },
  event: { type: string; mode: Mode },
): boolean {
  return webhook.events.includes(event.type) && reachesMode(event.type, event.mode, webhook.mode)
}
