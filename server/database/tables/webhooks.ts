import type { Generated } from 'kysely'

export type WebhooksTable = {
  id: string
  account_id: string
  /** A small number of its own: the slow lane of this webhook in the queue. */
  lane: Generated<number>
  url: string
  events: string[]
  description: string | null
  status: Generated<'enabled' | 'disabled'>
  disabled_reason: 'manual' | 'gone' | 'failing' | null
  /** AES-256-GCM, see `server/secrets.ts`. */
  secret: Buffer
  previous_secret: Buffer | null
  previous_secret_expires_at: Date | null
  /** When the present run of nothing but failures began; null when the last attempt succeeded. */
  failing_since: Date | null
  /** Whether its deliveries wait in the slow lane. */
  slow: Generated<boolean>
  created_at: Generated<Date>
  updated_at: Generated<Date>
}
