import { sql } from 'kysely'
import type { Handle } from '../database/connection.ts'
import type { SecretBox } from '../secrets.ts'
import { previousSecretOf, type RotatedSecret } from './secret-rotation.ts'

/** A delivery with all that its next attempt needs, as things stand now. */
export type DueDelivery = {
  id: string
  accountId: string
  webhookId: string
  eventId: string
  body: string
  attemptCount: number
  schedulePosition: number
  webhook: {
    url: string
    secret: string
    /** Also signs, while a rotation is recent. */
    previousSecret: string | null
    enabled: boolean
    slow: boolean
    lane: number
    failing: boolean
  }
}

/** A pending delivery whose webhook or event is not there any more. */
export type OrphanedDelivery = { id: string; webhookId: string; orphaned: true }

type Row = RotatedSecret & {
  id: string
  account_id: string
  webhook_id: string
  event_id: string
  attempt_count: number
  schedule_position: number
  body: string | null
  url: string | null
  secret: Buffer
  status: 'enabled' | 'disabled'
  slow: boolean
  lane: number
  failing: boolean
}

/**
 * Reads the pending ones of `deliveryIds`. URL and secret are those of this moment, so that what was
 * changed between two attempts applies from the next one.
 */
export async function loadDue(
  handle: Handle,
  { deliveryIds, now, secretBox }: { deliveryIds: readonly string[]; now: Date; secretBox: SecretBox },
): Promise<(DueDelivery | OrphanedDelivery)[]> {
  const { rows } = await sql<Row>`
    SELECT d.id, d.account_id, d.webhook_id, d.event_id, d.attempt_count, d.schedule_position,
      e.body,
      w.url, w.secret, w.previous_secret, w.previous_secret_expires_at, w.status, w.slow, w.lane,
      w.failing_since IS NOT NULL AS failing
    FROM deliveries d
    LEFT JOIN events e ON e.id = d.event_id
    LEFT JOIN webhooks w ON w.id = d.webhook_id
    WHERE d.id = ANY(${deliveryIds}::text[]) AND d.status = 'pending'
  `.execute(handle)
  return rows.map((row) => {
    if (row.url === null || row.body === null) return { id: row.id, webhookId: row.webhook_id, orphaned: true }
    return {
      id: row.id,
      accountId: row.account_id,
      webhookId: row.webhook_id,
      eventId: row.event_id,
      body: row.body,
      attemptCount: row.attempt_count,
      schedulePosition: row.schedule_position,
      webhook: {
        url: row.url,
        secret: secretBox.open(row.secret),
        previousSecret: previousSecretOf(row, secretBox, now),
        enabled: row.status === 'enabled',
        slow: row.slow,
        lane: row.lane,
        failing: row.failing,
      },
    }
  })
}
