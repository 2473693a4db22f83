import { sql } from 'kysely'
import type { Trx } from '../database/connection.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import { cancelPending } from './cancel.ts'
import { failingLimitMs } from './retry-schedule.ts'
import type { Settlement } from './settlement.ts'

/** What is known of a webhook before a batch of its attempts is written down. */
export type WebhookState = {
  id: string
  url: string
  /** Whether its latest attempt failed. */
  failing: boolean
  /** Whether it has done nothing but fail for five days. */
  expired: boolean
}

/** How a batch of attempts changes the health of webhooks, by their ids. */
export type HealthChanges = {
  /** The endpoint answered 410. */
  gone: string[]
  /** First failure after a success, or ever. */
  beginning: string[]
  /** One more failure after five days of nothing else. */
  expired: string[]
  /** First success after a failure. */
  recovered: string[]
}

/**
 * Locks the webhooks whose health a batch may change, in one order, and answers their state; a success
 * changes nothing for a webhook that is not failing. Done before their deliveries are touched, as
 * everywhere: a request that disables a webhook locks it first too.
 */
export async function lockAffected(trx: Trx, settlements: readonly Settlement[]): Promise<WebhookState[]> {
  const ids = [...new Set(settlements.map(({ delivery }) => delivery.webhookId))]
  const failures = settlements.filter(({ verdict }) => verdict.kind !== 'succeeded')
  const failed = [...new Set(failures.map(({ delivery }) => delivery.webhookId))]
  const { rows } = await sql<WebhookState>`
    SELECT id, url, failing_since IS NOT NULL AS failing,
      COALESCE(failing_since <= ${queueNow} - make_interval(secs => ${failingLimitMs / 1000}), false) AS expired
    FROM webhooks
    WHERE id = ANY(${ids}::text[]) AND (failing_since IS NOT NULL OR id = ANY(${failed}::text[]))
    ORDER BY id FOR NO KEY UPDATE
  `.execute(trx)
  return rows
}

/** Judges a batch: one success in it is enough to say that a webhook does not do nothing but fail. */
export function healthChanges(settlements: readonly Settlement[], states: readonly WebhookState[]): HealthChanges {
  const changes: HealthChanges = { gone: [], beginning: [], expired: [], recovered: [] }
  const byWebhook = Map.groupBy(settlements, ({ delivery }) => delivery.webhookId)
  for (const { id, url, failing, expired } of states) {
    const own = byWebhook.get(id) ?? []
    // What another URL answered, that the webhook had when the attempt began, says nothing of this one.
    if (own.some(({ verdict, delivery }) => verdict.kind === 'gone' && delivery.webhook.url === url)) {
      changes.gone.push(id)
    } else if (own.some(({ verdict }) => verdict.kind === 'succeeded')) {
      if (failing) changes.recovered.push(id)
    } else if (expired) changes.expired.push(id)
    else if (!failing) changes.beginning.push(id)
  }
  return changes
}

/**
 * Keeps account of runs of nothing but failures, and disables the webhooks whose endpoint is gone or
 * whose run has lasted five days, canceling what is pending for them.
 */
export async function recordHealth(trx: Trx, queue: Queue, changes: HealthChanges): Promise<void> {
  const { gone, beginning, expired, recovered } = changes
  if (recovered.length > 0) {
    await sql`UPDATE webhooks SET failing_since = NULL WHERE id = ANY(${recovered}::text[])`.execute(trx)
  }
  if (beginning.length > 0) {
    await sql`UPDATE webhooks SET failing_since = ${queueNow} WHERE id = ANY(${beginning}::text[])`.execute(trx)
  }
  for (const id of gone) await disable(trx, queue, { id, reason: 'gone' })
  for (const id of expired) await disable(trx, queue, { id, reason: 'failing' })
}

async function disable(
  trx: Trx,
  queue: Queue,
  { id, reason }: { id: string; reason: 'gone' | 'failing' },
): Promise<void> {
  const { numUpdatedRows } = await trx
    .updateTable('webhooks')
    .set({ status: 'disabled', disabled_reason: reason, updated_at: queueNow })
    .where('id', '=', id)
    .where('status', '=', 'enabled')
    .executeTakeFirst()
  if (numUpdatedRows > 0n) await cancelPending(trx, queue, id)
}
