import { sql } from 'kysely'
import type { Trx } from '../../database/connection.ts'
import { type Queue, queueNow } from '../../queue/queue.ts'
import { cancelPending } from '../cancel.ts'
import type { Settlement } from './settlement-types.ts'

/** A webhook that fails for this long without a success is disabled. Milliseconds: five days. */
export const failingLimitMs = 5 * 24 * 3_600_000

/**
 * Minimum number of failed attempts in that time to disable a webhook: a few events in a week say little about an
 * endpoint.
 */
const failingLimitAttempts = 10

/** The state of a webhook before a batch of its attempts is written. */
export type WebhookState = {
  id: string
  url: string
  /** True when its latest attempt failed. */
  failing: boolean
  /** True when it has failed for five days or longer without a success. */
  expired: boolean
  /** Failed attempts in its current run of failures. Counting stops at `failingLimitAttempts`. */
  attempts: number
}

/** A webhook and the number of failed attempts in its current run of failures. */
type FailureCount = { id: string; attempts: number }

/** The changes that a batch of attempts makes to the health of webhooks, by webhook id. */
export type HealthChanges = {
  /** The endpoint responded with 410. */
  gone: string[]
  /** First failure after a success, or the first ever. */
  beginning: FailureCount[]
  /** Further failures, below `failingLimitAttempts` before. */
  continuing: FailureCount[]
  /** Another failure after five days without a success, with at least `failingLimitAttempts` of them. */
  expired: string[]
  /** First success after a failure. */
  recovered: string[]
}

/**
 * Locks the webhooks whose health a batch may change, in order of id, and returns their state. A success changes
 * nothing for a webhook that is not failing. Call it before locking deliveries: a request that disables a webhook locks
 * the webhook first too (lock-order.ts).
 *
 * @param also Ids of other webhooks that the transaction is going to lock. Default: none.
 */
export async function lockAffected(
  trx: Trx,
  settlements: readonly Settlement[],
  also: readonly string[] = [],
): Promise<WebhookState[]> {
  const ids = [...new Set([...settlements.map(({ delivery }) => delivery.webhookId), ...also])]
  const failures = settlements.filter(({ verdict }) => verdict.kind !== 'succeeded')
  const failed = [...new Set([...failures.map(({ delivery }) => delivery.webhookId), ...also])]
  const { rows } = await sql<WebhookState>`
    SELECT id, url, failing_since IS NOT NULL AS failing, failing_attempts AS attempts,
      COALESCE(failing_since <= ${queueNow} - make_interval(secs => ${failingLimitMs / 1000}), false) AS expired
    FROM webhooks
    WHERE id = ANY(${ids}::text[]) AND (failing_since IS NOT NULL OR id = ANY(${failed}::text[]))
    ORDER BY id FOR NO KEY UPDATE
  `.execute(trx)
  return rows
}

/**
 * Returns the changes to the health of webhooks. One success in the batch ends a run of failures. Responses of another
 * URL, which the webhook had when the attempt began, do not count. Failed samples do not count either: a test must not
 * disable a webhook.
 */
export function healthChanges(settlements: readonly Settlement[], states: readonly WebhookState[]): HealthChanges {
  const changes: HealthChanges = { gone: [], beginning: [], continuing: [], expired: [], recovered: [] }
  const byWebhook = Map.groupBy(settlements, ({ delivery }) => delivery.webhookId)
  for (const { id, url, failing, expired, attempts: before } of states) {
    const own = (byWebhook.get(id) ?? []).filter(({ delivery }) => delivery.webhook.url === url)
    const failures = own.filter(({ verdict, delivery }) => verdict.kind !== 'succeeded' && !delivery.sample)
    const attempts = Math.min(failingLimitAttempts, (failing ? before : 0) + failures.length)
    if (failures.some(({ verdict }) => verdict.kind === 'gone')) changes.gone.push(id)
    else if (own.some(({ verdict }) => verdict.kind === 'succeeded')) {
      if (failing) changes.recovered.push(id)
    } else if (failures.length === 0) continue
    else if (!failing) changes.beginning.push({ id, attempts })
    else if (expired && attempts === failingLimitAttempts) changes.expired.push(id)
    else if (attempts > before) changes.continuing.push({ id, attempts })
  }
  return changes
}

/**
 * Records runs of failures. Disables webhooks whose endpoint is gone, and those whose run has lasted five days with
 * enough attempts, and cancels their pending deliveries.
 */
export async function recordHealth(trx: Trx, queue: Queue, changes: HealthChanges): Promise<void> {
  const { gone, beginning, continuing, expired, recovered } = changes
  if (recovered.length > 0) {
    await sql`
      UPDATE webhooks SET failing_since = NULL, failing_attempts = 0 WHERE id = ANY(${recovered}::text[])
    `.execute(trx)
  }
  const counted = [...beginning, ...continuing]
  if (counted.length > 0) {
    await sql`
      UPDATE webhooks SET failing_since = COALESCE(failing_since, ${queueNow}), failing_attempts = i.attempts
      FROM unnest(${counted.map(({ id }) => id)}::text[], ${counted.map(({ attempts }) => attempts)}::int[])
        AS i (webhook_id, attempts)
      WHERE id = i.webhook_id
    `.execute(trx)
  }
  const disabled = [
    ...(await disable(trx, { ids: gone, reason: 'gone' })),
    ...(await disable(trx, { ids: expired, reason: 'failing' })),
  ]
  await cancelPending(trx, queue, disabled)
}

/** Ends the run of failures of a webhook whose endpoint, at this URL, accepted a test. */
export async function endRunOfFailures(
  trx: Trx,
  { webhookId, url }: { webhookId: string; url: string },
): Promise<void> {
  await sql`
    UPDATE webhooks SET failing_since = NULL, failing_attempts = 0
    WHERE id = ${webhookId} AND url = ${url} AND failing_since IS NOT NULL
  `.execute(trx)
}

/**
 * Disables webhooks on behalf of the service, and returns the ids of those that were enabled. No other code disables
 * webhooks without a request. The account sees the reason in `disabledReason`, set in the same transaction.
 */
async function disable(
  trx: Trx,
  { ids, reason }: { ids: readonly string[]; reason: 'gone' | 'failing' },
): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await trx
    .updateTable('webhooks')
    .set({ status: 'disabled', disabled_reason: reason, updated_at: queueNow })
    .where('id', 'in', ids)
    .where('status', '=', 'enabled')
    .returning('id')
    .execute()
  return rows.map(({ id }) => id)
}
