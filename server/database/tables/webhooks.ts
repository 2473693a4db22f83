import type { ColumnType, Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

export type WebhooksTable = {
  id: string
  account_id: string
  /** The mode of the key that created it. */
  mode: Generated<Mode>
  /** The number of its flow in `delivery_flows`. A trigger sets it by account and URL. */
  flow: Generated<number>
  url: string
  events: string[]
  description: string | null
  metadata: ColumnType<Record<string, string>, string | undefined, string>
  status: Generated<'enabled' | 'disabled'>
  disabled_reason: 'manual' | 'gone' | 'failing' | null
  /** AES-256-GCM, see `server/secrets/secret-box.ts`. */
  secret: Buffer
  previous_secret: Buffer | null
  previous_secret_expires_at: Date | null
  /** The secrets before `previous_secret`, newest first. */
  earlier_secrets: Generated<Buffer[]>
  /** The times until which they sign, in the same order. */
  earlier_secrets_expire_at: Generated<Date[]>
  /** When the current run of failures began. Null: the last attempt succeeded. */
  failing_since: Date | null
  /** Failed attempts in that run. Counting stops at the number that can disable a webhook. */
  failing_attempts: Generated<number>
  /** Grows with each change of URL, status or secrets, by a trigger. */
  version: Generated<number>
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

/** The URLs of webhooks: each with the version that it began with. Triggers write them, the last 20 of a webhook. */
export type WebhookUrlsTable = {
  webhook_id: string
  version: number
  url: string
}

/** States of flows that recently had work, as reported by each process. Unlogged: it may be empty at any time. */
export type FlowStatesTable = {
  flow: number
  process: string
  /** The limit of the flow. */
  max_in_flight: number
  in_flight: number
  /** The reason why its deliveries in that process wait. Null: the process knows of none that wait. */
  waits_for: 'endpoint_limit' | 'account_share' | 'claim' | null
  updated_at: Date
}

/** Results of attempts, counted by webhook and five minutes. */
export type WebhookOutcomesTable = {
  webhook_id: string
  /** The start of the five minutes. */
  bucket: Date
  succeeded: number
  failed: number
  /** A bigint: the sum over these attempts. */
  duration_ms: string
  max_duration_ms: number
}

/** The queues of deliveries: one for each URL of an account. */
export type DeliveryFlowsTable = {
  /** From 1,000,000,000. */
  number: Generated<number>
  account_id: string
  /** SHA-256 of the URL. */
  url_hash: Buffer
  /** The host name or address in the URL, without the port. */
  host: string
}
