import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Handle } from '../database/connection.ts'
import { nextSequence } from '../lib/sequence.ts'
import { type ClaimedDelivery, queueNow } from '../queue/queue.ts'
import { type SealedSecrets, sealedSecretColumns } from './attempt/keyring.ts'

/** The flow that the deliveries of a webhook wait in. */
export type WebhookFlow = {
  /** The number of the flow. */
  flow: number
  /** The host name or address in the URL. */
  host: string
}

/** A delivery with everything that its next attempt needs, as read at one moment. */
export type DueDelivery = {
  id: string
  accountId: string
  webhookId: string
  eventId: string
  body: string
  /** True for an event that was made up for a test. */
  sample: boolean
  /** The mode of the event. */
  mode: Mode
  /** The trace of the event. Null: it is not traced. */
  traceparent: string | null
  attemptCount: number
  /** The run of the schedule. With `schedulePosition` it identifies the attempt. */
  run: number
  schedulePosition: number
  /** The webhook as it was read, by a statement sent after `readAt`. */
  webhook: SealedSecrets & WebhookFlow & { url: string; mode: Mode; version: number; readAt: number }
}

/** `waitedSeconds`: the time between when the delivery was due and when it was read. */
type LoadedDelivery = DueDelivery & { waitedSeconds: number }

/** A delivery that this process has claimed. */
export type Claim = { delivery: DueDelivery; claimed: ClaimedDelivery }

/** A pending delivery that must not be attempted now. */
export type PassedDelivery = {
  id: string
  /**
   * `early`: it is not due; another worker has attempted it since it was claimed. `unwanted`: its webhook is disabled
   * or deleted, or its event is deleted.
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
  webhook_mode: Mode | null
  status: 'enabled' | 'disabled' | null
  waited_seconds: number
  version: number
  flow: number
  host: string
}

/** A delivery claimed as due can be this far from its due time, because of rounding to milliseconds. Seconds. */
const roundingSeconds = 1

const secrets = sql.join(sealedSecretColumns.map((column) => sql.ref(`w.${column}`)))

/**
 * Reads those of `deliveryIds` that are pending. URL and secrets are current at this moment: `WebhookChanges` detects
 * changes made before the attempt begins.
 */
export async function loadDue(
  handle: Handle,
  deliveryIds: readonly string[],
): Promise<(LoadedDelivery | PassedDelivery)[]> {
  const readAt = nextSequence()
  const { rows } = await sql<Row>`
    SELECT d.id, d.account_id, d.webhook_id, d.event_id, d.attempt_count, d.run, d.schedule_position,
      e.body, e.sample, e.mode, e.traceparent,
      w.url, w.mode AS webhook_mode, ${secrets}, w.status, w.version, w.flow, f.host,
      EXTRACT(EPOCH FROM ${queueNow} - d.next_attempt_at)::float8 AS waited_seconds
    FROM deliveries d
    -- OFFSET 0 makes the planner look up each event by its primary key, whatever the statistics say.
    LEFT JOIN LATERAL (SELECT body, sample, mode, traceparent FROM events WHERE id = d.event_id OFFSET 0) e ON true
    LEFT JOIN webhooks w ON w.id = d.webhook_id
    LEFT JOIN delivery_flows f ON f.number = w.flow
    WHERE d.id = ANY(${deliveryIds}::text[]) AND d.status = 'pending'
  `.execute(handle)
  return rows.map((row) => {
    const { id, url, body, mode, webhook_mode: webhookMode } = row
    if (url === null || webhookMode === null || body === null || mode === null || row.status !== 'enabled') {
      return { id, passed: 'unwanted' }
    }
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
        mode: webhookMode,
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
