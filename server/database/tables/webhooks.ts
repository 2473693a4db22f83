import type { ColumnType, Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

export type WebhooksTable = {
  id: string
  account_id: string
  /** That of the key it was made with. */
  mode: Generated<Mode>
  /** The number of its flow in `delivery_flows`, which a trigger finds by its account and URL. */
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
  /** Those before `previous_secret`, newest first. */
  earlier_secrets: Generated<Buffer[]>
  /** Until when each of them signs, in the same order. */
  earlier_secrets_expire_at: Generated<Date[]>
  /** When the present run of nothing but failures began; null when the last attempt succeeded. */
  failing_since: Date | null
  /** Failed attempts in that run. Counted up to the least number that disables a webhook. */
  failing_attempts: Generated<number>
  /** Grows with each change of URL, status or secrets, by a trigger. */
  version: Generated<number>
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

/** What processes say of flows that had something to do lately. Unlogged: it may be empty at any time. */
export type FlowStatesTable = {
  flow: number
  process: string
  /** Its limit. */
  max_in_flight: number
  in_flight: number
  /** What its deliveries wait for there. Null: the process knows of none that wait. */
  waits_for: 'endpoint_limit' | 'account_share' | 'claim' | null
  updated_at: Date
}

/** What came of attempts, counted by webhook and five minutes. */
export type WebhookOutcomesTable = {
  webhook_id: string
  /** The beginning of the five minutes. */
  bucket: Date
  succeeded: number
  failed: number
  /** A bigint: of all these attempts together. */
  duration_ms: string
  max_duration_ms: number
}

/** The queues of deliveries: one for each URL of an account. */
export type DeliveryFlowsTable = {
  /** From 1,000,000,000 on. */
  number: Generated<number>
  account_id: string
  /** SHA-256 of the URL. */
  url_hash: Buffer
  /** The name or address in the URL, without the port. */
  host: string
}
