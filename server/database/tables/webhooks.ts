import type { ColumnType, Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

export type WebhooksTable = {
  id: string
  account_id: string
  /** That of the key it was made with. */
  mode: Generated<Mode>
  /** A small number of its own: the slow lane of this webhook in the queue. */
  lane: Generated<number>
  url: string
  events: string[]
  description: string | null
  metadata: ColumnType<Record<string, string>, string | undefined, string>
  status: Generated<'enabled' | 'disabled'>
  disabled_reason: 'manual' | 'gone' | 'failing' | null
  /** AES-256-GCM, see `server/secrets.ts`. */
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
  /** Whether its deliveries wait in the slow lane. */
  slow: Generated<boolean>
  created_at: Generated<Date>
  updated_at: Generated<Date>
}
