import { sql } from 'kysely'
import type { DeliveryWithAttempts } from '../../contract/deliveries.ts'
import type { Handle } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { FlowStatesTable } from '../database/tables/webhooks.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import { dueSince } from '../webhook-delivery/due-since.ts'
import { type DeliveryRow, deliveryColumns, isSample, modeOfEvent } from './queries.ts'

/** States of flows count for this long. Processes write them every 5 seconds. */
export const freshSeconds = 15

export type WaitingDelivery = DeliveryRow & {
  /** When the last attempt was due and claimed. */
  queued_at: Date | null
  claimed_at: Date | null
  /** True when the next attempt is due. */
  is_due: boolean
  due_since: Date | null
  /** When its job was claimed. Null: it is not claimed. */
  job_claimed_at: Date | null
  /** The reasons why its flow waits, as reported by each process. */
  waits: NonNullable<FlowStatesTable['waits_for']>[]
}

/** Reads a delivery and everything that explains why it waits, in one snapshot. */
export async function findWaitingDelivery(
  { handle, queue }: { handle: Handle; queue: Queue },
  { webhookId, deliveryId }: { webhookId: string; deliveryId: string },
): Promise<WaitingDelivery | undefined> {
  const columns = sql.join(deliveryColumns.map((column) => sql.ref(`deliveries.${column}`)))
  const statement = sql<WaitingDelivery>`
    SELECT ${columns}, ${isSample} AS sample, ${modeOfEvent} AS mode, queued_at, deliveries.claimed_at,
      coalesce(next_attempt_at <= p.now, false) AS is_due, ${dueSince('deliveries')} AS due_since,
      j.claimed_at::timestamptz(3) AS job_claimed_at,
      ARRAY(
        SELECT waits_for FROM flow_states
        WHERE flow = j.flow AND waits_for IS NOT NULL AND updated_at > p.now - make_interval(secs => ${freshSeconds})
      ) AS waits
    FROM deliveries CROSS JOIN (SELECT ${queueNow} AS now OFFSET 0) p
    LEFT JOIN LATERAL (${queue.jobOf(deliveryId)} OFFSET 0) j ON status = 'pending'
    WHERE deliveries.id = ${deliveryId} AND webhook_id = ${webhookId}
  `
  const [row] = await executePrepared(handle, { name: 'find_waiting_delivery' }, statement)
  return row
}

/**
 * Returns when the attempt that a delivery waits for was due and claimed, or else the last attempt, and what it waits
 * for.
 */
export function waitOf(row: WaitingDelivery): Pick<DeliveryWithAttempts, 'queuedAt' | 'claimedAt' | 'waitingFor'> {
  const isWaiting = row.status === 'pending' && (row.is_due || row.job_claimed_at !== null)
  const queuedAt = isWaiting ? row.due_since : row.queued_at
  const claimedAt = isWaiting ? row.job_claimed_at : row.claimed_at
  return {
    queuedAt: queuedAt?.toISOString() ?? null,
    claimedAt: claimedAt?.toISOString() ?? null,
    waitingFor: reasonOf(row),
  }
}

function reasonOf({ status, is_due, job_claimed_at, waits }: WaitingDelivery): DeliveryWithAttempts['waitingFor'] {
  if (status !== 'pending' || job_claimed_at !== null) return null
  if (!is_due) return 'retry_schedule'
  // Any process may take the delivery. So another reason counts only if every process that reports has one.
  if (waits.includes('claim')) return 'claim'
  return waits.includes('endpoint_limit') ? 'endpoint_limit' : (waits[0] ?? 'claim')
}
