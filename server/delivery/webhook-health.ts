import { sql } from 'kysely'
import type { Trx } from '../database/connection.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import { cancelPending } from './cancel.ts'
import { failingLimitMs } from './retry-schedule.ts'
import type { Settlement } from './settlement.ts'

export type DisabledWebhook = { id: string; reason: 'gone' | 'failing' }

/**
 * Keeps account of runs of nothing but failures: begins one at the first failure, ends it at a
 * success. Answers the webhooks that are to be disabled: those whose endpoint answered 410, and
 * those whose run has lasted five days. Touches no row where nothing changes.
 */
export async function recordHealth(trx: Trx, settlements: readonly Settlement[]): Promise<DisabledWebhook[]> {
  const gone = new Set<string>()
  const succeeded = new Map<string, boolean>()
  for (const { delivery, verdict } of settlements) {
    if (verdict.kind === 'gone') gone.add(delivery.webhookId)
    // One success in the batch is enough to say that it is not nothing but failures.
    const before = succeeded.get(delivery.webhookId) ?? false
    succeeded.set(delivery.webhookId, before || verdict.kind === 'succeeded')
  }
  const wasFailing = new Set(settlements.filter((s) => s.delivery.webhook.failing).map((s) => s.delivery.webhookId))
  const recovered = [...succeeded].filter(([id, success]) => success && wasFailing.has(id)).map(([id]) => id)
  const failing = [...succeeded].filter(([, success]) => !success).map(([id]) => id)

  if (recovered.length > 0) {
    await sql`UPDATE webhooks SET failing_since = NULL WHERE id = ANY(${recovered.sort()}::text[])`.execute(trx)
  }
  const beginning = failing.filter((id) => !wasFailing.has(id))
  if (beginning.length > 0) {
    await sql`
      UPDATE webhooks SET failing_since = ${queueNow}
      WHERE id = ANY(${beginning.sort()}::text[]) AND failing_since IS NULL
    `.execute(trx)
  }
  const disabled: DisabledWebhook[] = [...gone].map((id) => ({ id, reason: 'gone' }))
  const continuing = failing.filter((id) => wasFailing.has(id) && !gone.has(id))
  if (continuing.length > 0) {
    const { rows } = await sql<{ id: string }>`
      SELECT id FROM webhooks
      WHERE id = ANY(${continuing}::text[])
        AND failing_since <= ${queueNow} - make_interval(secs => ${failingLimitMs / 1000})
    `.execute(trx)
    disabled.push(...rows.map(({ id }) => ({ id, reason: 'failing' as const })))
  }
  return disabled
}

/** Disables a webhook for a reason found while delivering, and cancels what is pending for it. */
export async function cancelAndDisable(trx: Trx, queue: Queue, { id, reason }: DisabledWebhook): Promise<void> {
  const { numUpdatedRows } = await trx
    .updateTable('webhooks')
    .set({ status: 'disabled', disabled_reason: reason, updated_at: queueNow })
    .where('id', '=', id)
    .where('status', '=', 'enabled')
    .executeTakeFirst()
  if (numUpdatedRows > 0n) await cancelPending(trx, queue, id)
}
