import type { DueDelivery } from '../load-deliveries.ts'

/**
 * An event of the outbox that is leased to this process, with the deliveries that are to be made of it. They are written
 * down when they are over, or soon: see `startLeasedEvents`.
 */
export type LeasedEvent = {
  id: string
  type: string
  createdAt: Date
  deliveries: readonly DueDelivery[]
}
