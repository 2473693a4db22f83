import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Handle } from '../database/connection.ts'
import { nextSequence } from '../lib/sequence.ts'
import { type ClaimedDelivery, queueNow } from '../queue/queue.ts'
import { type SealedSecrets, sealedSecretColumns } from './attempt/keyring.ts'

/** Where the deliveries of a webhook wait. */
export type WebhookFlow = {
  /** The number of its flow. */
  flow: number
  /** The name or address in its URL. */
  host: string
}

/** A delivery with all that its next attempt needs, as things stand now. */
export type DueDelivery = {
  id: string
  accountId: string
  webhookId: string
  eventId: string
  body: string
  /** Whether the event was made up for a test. */
  sample: boolean
  /** That of the event. */
  mode: Mode
  /** The trace of the event; null: it is in none. */
  traceparent: string | null
  attemptCount: number
  /** Which run of the schedule this is; with `schedulePosition` it names the attempt. */
  run: number
  schedulePosition: number
  /** As it was read: by a statement that was sent after the moment `readAt`. */
  webhook: SealedSecrets & WebhookFlow & { url: string; version: number; readAt: number }
}

/** `waitedSeconds`: since it was due, to the moment it was read. */
type LoadedDelivery = DueDelivery & { waitedSeconds: number }

/** A delivery this process has claimed. */
export type Claim = { delivery: DueDelivery; claimed: ClaimedDelivery }

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
  run: number
  schedule_position: number
  body: string | null
  sample: boolean | null
  mode: Mode | null
  traceparent: string | null
  url: string | null
  status: 'enabled' | 'disabled' | null
  waited_seconds: number
  version: number
  flow: number
  host: string
}

/** How far from its time a delivery can be that was claimed as due: what rounding to milliseconds takes. Seconds. */
const roundingSeconds = 1

const secrets = sql.join(sealedSecretColumns.map((column) => sql.ref(`w.${column}`)))

/**
 * Reads those of `deliveryIds` that are pending. URL and secrets are those of this moment: see `WebhookChanges` for
 * what is changed before the attempt begins.
 */
export async function loadDue(
  handle: Handle,
  deliveryIds: readonly string[],
): Promise<(LoadedDelivery | PassedDelivery)[]> {
  const readAt = nextSequence()
  const { rows } = await sql<Row>`
    SELECT d.id, d.account_id, d.webhook_id, d.event_id, d.attempt_count, d.run, d.schedule_position,
      e.body, e.sample, e.mode, e.traceparent,
      w.url, ${secrets}, w.status, w.version, w.flow, f.host,
      EXTRACT(EPOCH FROM ${queueNow} - d.next_attempt_at)::float8 AS waited_seconds
    FROM deliveries d
    -- One by one along the key, whatever the statistics say.
    LEFT JOIN LATERAL (SELECT body, sample, mode, traceparent FROM events WHERE id = d.event_id OFFSET 0) e ON true
    LEFT JOIN webhooks w ON w.id = d.webhook_id
    LEFT JOIN delivery_flows f ON f.number = w.flow
    WHERE d.id = ANY(${deliveryIds}::text[]) AND d.status = 'pending'
  `.execute(handle)
  return rows.map((row) => {
    const { id, url, body, mode } = row
    if (url === null || body === null || mode === null || row.status !== 'enabled') return { id, passed: 'unwanted' }
    if (row.waited_seconds < -roundingSeconds) return { id, passed: 'early' }
    return {
      id,
      accountId: row.account_id,
      webhookId: row.webhook_id,
      eventId: row.event_id,
      body,
      mode,
      traceparent: row.traceparent,
      sample: row.sample === true,
      attemptCount: row.attempt_count,
      run: row.run,
      schedulePosition: row.schedule_position,
      waitedSeconds: Math.max(0, row.waited_seconds),
      webhook: {
        url,
        secret: row.secret,
        previous_secret: row.previous_secret,
        previous_secret_expires_at: row.previous_secret_expires_at,
        earlier_secrets: row.earlier_secrets,
        earlier_secrets_expire_at: row.earlier_secrets_expire_at,
        version: row.version,
        readAt,
        flow: row.flow,
        host: row.host,
      },
    }
  })
}
