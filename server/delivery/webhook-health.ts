import { sql } from 'kysely'
import type { Trx } from '../database/connection.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import { cancelPending } from './cancel.ts'
import { failingLimitMs } from './retry-schedule.ts'
import type { Settlement } from './settlement.ts'

/** What a batch of attempts says of webhooks whose health it may change, by their ids. */
export type HealthChanges = {
  /** The endpoint answered 410. */
  gone: string[]
  /** First failure after a success, or ever. */
  beginning: string[]
  /** One more failure. */
  continuing: string[]
  /** First success after a failure. */
  recovered: string[]
}

/** Judges a batch: one success in it is enough to say that a webhook does not do nothing but fail. */
export function healthChanges(settlements: readonly Settlement[]): HealthChanges {
  const changes: HealthChanges = { gone: [], beginning: [], continuing: [], recovered: [] }
  for (const [id, own] of Map.groupBy(settlements, ({ delivery }) => delivery.webhookId)) {
    const wasFailing = own.some(({ delivery }) => delivery.webhook.failing)
    if (own.some(({ verdict }) => verdict.kind === 'gone')) changes.gone.push(id)
    else if (own.some(({ verdict }) => verdict.kind === 'succeeded')) {
      if (wasFailing) changes.recovered.push(id)
    } else if (wasFailing) changes.continuing.push(id)
    else changes.beginning.push(id)
  }
  return changes
}

/**
 * Locks the webhooks that may change, in one order. Done before their deliveries are touched, as
 * everywhere: a request that disables a webhook locks it first too.
 */
export async function lockChanging(trx: Trx, changes: HealthChanges): Promise<void> {
  const ids = Object.values(changes).flat().sort()
  if (ids.length === 0) return
  await sql`SELECT id FROM webhooks WHERE id = ANY(${ids}::text[]) ORDER BY id FOR NO KEY UPDATE`.execute(trx)
}

/**
 * Keeps account of runs of nothing but failures, and disables the webhooks whose endpoint is gone or
 * whose run has lasted five days, canceling what is pending for them.
 */
export async function recordHealth(trx: Trx, queue: Queue, changes: HealthChanges): Promise<void> {
  const { gone, beginning, continuing, recovered } = changes
  if (recovered.length > 0) {
    await sql`UPDATE webhooks SET failing_since = NULL WHERE id = ANY(${recovered}::text[])`.execute(trx)
  }
  if (beginning.length > 0) {
    await sql`
      UPDATE webhooks SET failing_since = ${queueNow} WHERE id = ANY(${beginning}::text[]) AND failing_since IS NULL
    `.execute(trx)
  }
  for (const id of gone) await disable(trx, queue, { id, reason: 'gone' })
  if (continuing.length > 0) {
    const { rows } = await sql<{ id: string }>`
      SELECT id FROM webhooks
      WHERE id = ANY(${continuing}::text[])
        AND failing_since <= ${queueNow} - make_interval(secs => ${failingLimitMs / 1000})
    `.execute(trx)
    for (const { id } of rows) await disable(trx, queue, { id, reason: 'failing' })
  }
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
