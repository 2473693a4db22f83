import type { EventTypeName } from '../../contract/event-types.ts'
import { brokenRule } from '../shared/errors.ts'
import type { PortalScope } from '../shared/scope.ts'

/** Returns the metadata of a webhook that a customer makes in the portal, and all of it that they see. */
export function metadataInPortal({ customer }: PortalScope): Record<string, string> {
  return { customer }
}

type Given = { metadata?: unknown; events?: readonly EventTypeName[] | undefined }

/**
 * Throws `rule_violation` for what a customer may not set in the portal: metadata, by which the webhook would become
 * another customer's, and event types that the session does not have. Types that the webhook has may stay.
 */
export function assertInPortal(
  { eventTypes }: PortalScope,
  { metadata, events = [] }: Given,
  before?: { events: readonly EventTypeName[] },
): void {
  if (metadata !== undefined) throw brokenRule('body.metadata', 'cannot be set in the portal')
  if (eventTypes === null) return
  const foreign = events.find((type) => !eventTypes.includes(type) && before?.events.includes(type) !== true)
  if (foreign !== undefined) throw brokenRule('body.events', `"${foreign}" is not among the event types of this portal`)
}
