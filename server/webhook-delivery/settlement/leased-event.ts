import type { DueDelivery } from '../load-deliveries.ts'

/**
 * An event of the outbox that is leased to this process, with the deliveries to make for it. The deliveries are written
 * when their attempts are over, or shortly after: see `startLeasedEvents`.
 */
export type LeasedEvent = {
  id: string
  type: string
  createdAt: Date
  deliveries: readonly DueDelivery[]
}
