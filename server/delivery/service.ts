import type { Delivery, DeliveryListQuery, DeliveryWithAttempts } from '../../contract/deliveries.ts'
import type { EventTypeName } from '../../contract/event-types.ts'
import type { Page } from '../../contract/pagination.ts'
import type { WebhookTestResult } from '../../contract/webhooks.ts'
import type { Handle, Trx } from '../database/connection.ts'

/** Use cases around deliveries. Throws DomainErrors; every call is limited to one account. */
export type DeliveryService = {
  list(handle: Handle, accountId: string, webhookId: string, query: DeliveryListQuery): Promise<Page<Delivery>>
  get(handle: Handle, accountId: string, webhookId: string, deliveryId: string): Promise<DeliveryWithAttempts>
  /** Makes the next attempt now, one sequence of attempts whatever was scheduled. */
  resend(handle: Handle, accountId: string, webhookId: string, deliveryId: string): Promise<Delivery>
  /** Has everything that failed or was canceled since `since` sent again, in the background. */
  recover(handle: Handle, accountId: string, webhookId: string, since: Date): Promise<{ count: number }>
  /** Cancels all that is pending for a webhook that was disabled or deleted, with its jobs. */
  cancelPending(trx: Trx, webhookId: string): Promise<void>
  /** Sends a sample of `type` at once, tried once and logged. */
  sendTest(handle: Handle, accountId: string, webhookId: string, type: EventTypeName): Promise<WebhookTestResult>
}
