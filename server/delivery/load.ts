import { sql } from 'kysely'
import type { Handle } from '../database/connection.ts'
import { queueNow } from '../queue/queue.ts'
import type { SealedSecrets } from './keyring.ts'

/** A delivery with all that its next attempt needs, as things stand now. */
export type DueDelivery = {
  id: string
  accountId: string
  webhookId: string
  eventId: string
  body: string
  /** The trace of the event; null: it is in none. */
  traceparent: string | null
  attemptCount: number
  schedulePosition: number
  webhook: SealedSecrets & { url: string; slow: boolean; lane: number }
}

/** A pending delivery that is not to be made now. */
export type PassedDelivery = {
  id: string
  /**
   * `early`: its time has not come; another worker has carried it on since it was claimed.
   * `unwanted`: its webhook is disabled or gone, or its event is gone.
   */
  passed: 'early' | 'unwanted'
}

type Row = SealedSecrets & {
  id: string
  account_id: string
  webhook_id: string
  event_id: string
  attempt_count: number
  schedule_position: number
  body: string | null
  traceparent: string | null
  url: string | null
  status: 'enabled' | 'disabled' | null
  early: boolean
  slow: boolean
  lane: number
}

/** How far from its time a delivery can be that was claimed as due: what rounding to milliseconds takes. Seconds. */
const roundingSeconds = 1

/**
 * Reads those of `deliveryIds` that are pending. URL and secrets are those of this moment, so that what
 * was changed between two attempts applies from the next one.
 */
export async function loadDue(
  handle: Handle,
  deliveryIds: readonly string[],
): Promise<(DueDelivery | PassedDelivery)[]> {
  const { rows } = await sql<Row>`
    SELECT d.id, d.account_id, d.webhook_id, d.event_id, d.attempt_count, d.schedule_position,
      e.body, e.traceparent,
      w.url, w.secret, w.previous_secret, w.previous_secret_expires_at, w.status, w.slow, w.lane,
      d.next_attempt_at > ${queueNow} + make_interval(secs => ${roundingSeconds}) AS early
    FROM deliveries d
    -- One by one along the key, whatever the statistics say.
    LEFT JOIN LATERAL (SELECT body, traceparent FROM events WHERE id = d.event_id OFFSET 0) e ON true
    LEFT JOIN webhooks w ON w.id = d.webhook_id
    WHERE d.id = ANY(${deliveryIds}::text[]) AND d.status = 'pending'
  `.execute(handle)
  return rows.map((row) => {
    const { id, url, body } = row
    if (url === null || body === null || row.status !== 'enabled') return { id, passed: 'unwanted' }
    if (row.early) return { id, passed: 'early' }
    return {
      id,
      accountId: row.account_id,
      webhookId: row.webhook_id,
      eventId: row.event_id,
      body,
      traceparent: row.traceparent,
      attemptCount: row.attempt_count,
      schedulePosition: row.schedule_position,
      webhook: {
        url,
        secret: row.secret,
        previous_secret: row.previous_secret,
        previous_secret_expires_at: row.previous_secret_expires_at,
        slow: row.slow,
        lane: row.lane,
      },
    }
  })
}
