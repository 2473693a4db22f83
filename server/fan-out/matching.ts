import type { OutboxEvent } from '../outbox/append.ts'
import { newId } from '../shared/ids.ts'
import type { DueDelivery } from '../webhook-delivery/load-deliveries.ts'
import type { LeasedEvent } from '../webhook-delivery/settlement/leased-event.ts'
import { receives } from '../webhook-delivery/subscription.ts'
import type { Target } from './targets.ts'

/** Returns those of the account's webhooks that receive an event. */
export function receiversOf(event: OutboxEvent, ofAccount: readonly Target[]): Target[] {
  return ofAccount.filter((target) => receives(target, event))
}

/** Returns an event with a new delivery for each of its receivers. */
export function toLeasedEvent(event: OutboxEvent, receivers: readonly Target[], createdAt: Date): LeasedEvent {
  const { id, accountId, mode, type, body, traceparent } = event
  const deliveries = receivers.map(
    (target): DueDelivery => ({
      id: newId('delivery', createdAt),
      accountId,
      webhookId: target.id,
      eventId: id,
      body,
      mode,
      traceparent,
      // Samples are sent without the outbox.
      sample: false,
      attemptCount: 0,
      run: 0,
      schedulePosition: 0,
      webhook: target.webhook,
    }),
  )
  return { id, type, createdAt, deliveries }
}
