import type { AccountsTable } from './tables/accounts.ts'
import type { ApiKeysTable } from './tables/api-keys.ts'
import type { AttemptsTable, DeliveriesTable } from './tables/deliveries.ts'
import type { EventsTable, OutboxTable } from './tables/events.ts'
import type { IdempotencyKeysTable, RateLimitWindowsTable, SettingsTable } from './tables/operations.ts'
import type { AudiencesTable, ContactsTable, SubscribersTable } from './tables/people.ts'
import type { WebhooksTable } from './tables/webhooks.ts'

/** All tables of the service, for Kysely. The queue's own stand in the schema `pgboss`. */
export type Database = {
  accounts: AccountsTable
  api_keys: ApiKeysTable
  webhooks: WebhooksTable
  events: EventsTable
  outbox: OutboxTable
  deliveries: DeliveriesTable
  attempts: AttemptsTable
  subscribers: SubscribersTable
  audiences: AudiencesTable
  contacts: ContactsTable
  idempotency_keys: IdempotencyKeysTable
  rate_limit_windows: RateLimitWindowsTable
  settings: SettingsTable
}
