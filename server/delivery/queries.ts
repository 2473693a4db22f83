import { type ExpressionBuilder, sql } from 'kysely'
import type { DeliveryListQuery, DeliveryStatus } from '../../contract/deliveries.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { Database } from '../database/schema.ts'
import { firstIdAt, idAboveThoseBefore } from '../ids.ts'
import { queueNow } from '../queue/queue.ts'
import type { SealedSecrets } from './keyring.ts'

const deliveryColumns = [
  'id',
  'event_id',
  'event_type',
  'status',
  'attempt_count',
  'next_attempt_at',
  'created_at',
  'completed_at',
] as const

export type WebhookTarget = SealedSecrets & {
  id: string
  url: string
  status: 'enabled' | 'disabled'
  slow: boolean
  lane: number
}

/** One webhook of the account, or undefined. `lock` keeps it from being changed until the transaction ends. */
export async function findWebhook(
  handle: Handle,
  { accountId, webhookId, lock = false }: { accountId: string; webhookId: string; lock?: boolean },
): Promise<WebhookTarget | undefined> {
  return handle
    .selectFrom('webhooks')
    .select(['id', 'url', 'secret', 'previous_secret', 'previous_secret_expires_at', 'status', 'slow', 'lane'])
    .where('id', '=', webhookId)
    .where('account_id', '=', accountId)
    .$if(lock, (query) => query.forShare())
    .executeTakeFirst()
}

/** Newest first; up to `limit` beginning below `before`. */
export async function listDeliveries(
  handle: Handle,
  { webhookId, query, before, limit }: { webhookId: string; query: DeliveryListQuery; before?: string; limit: number },
) {
  return handle
    .selectFrom('deliveries')
    .select(deliveryColumns)
    .where('webhook_id', '=', webhookId)
    .$if(before !== undefined, (q) => q.where('id', '<', before as string))
    .$if(query.status !== undefined, (q) => q.where('status', '=', query.status as DeliveryStatus))
    .$if(query.eventType !== undefined, (q) => q.where('event_type', '=', query.eventType as string))
    .$if(query.from !== undefined, (q) => q.where(createdSince(query.from as string)))
    .$if(query.until !== undefined, (q) => q.where(createdBefore(query.until as string)))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Created at or after a time; the bound on the id lets the index stop there. */
function createdSince(time: string) {
  const at = new Date(time)
  return (eb: ExpressionBuilder<Database, 'deliveries'>) =>
    eb.and([eb('id', '>=', firstIdAt('delivery', at)), eb('created_at', '>=', at)])
}

/** Created before a time; the bound on the id lets the index begin there. */
function createdBefore(time: string) {
  const at = new Date(time)
  const bound = idAboveThoseBefore('delivery', at)
  return (eb: ExpressionBuilder<Database, 'deliveries'>) => eb.and([eb('id', '<', bound), eb('created_at', '<', at)])
}

export type DeliveryRow = Awaited<ReturnType<typeof listDeliveries>>[number]

export async function findDelivery(
  handle: Handle,
  { webhookId, deliveryId, lock = false }: { webhookId: string; deliveryId: string; lock?: boolean },
): Promise<DeliveryRow | undefined> {
  return handle
    .selectFrom('deliveries')
    .select(deliveryColumns)
    .where('id', '=', deliveryId)
    .where('webhook_id', '=', webhookId)
    .$if(lock, (query) => query.forUpdate())
    .executeTakeFirst()
}

export async function listAttempts(handle: Handle, deliveryId: string) {
  return handle.selectFrom('attempts').selectAll().where('delivery_id', '=', deliveryId).orderBy('number').execute()
}

export type AttemptRow = Awaited<ReturnType<typeof listAttempts>>[number]

/**
 * Makes a delivery due now. One that is pending keeps its place in the schedule; one that had ended
 * begins the schedule anew, but for a sample, which is tried once.
 */
export async function makeDue(
  trx: Trx,
  { deliveryId, lastPosition }: { deliveryId: string; lastPosition: number },
): Promise<DeliveryRow> {
  const { rows } = await sql<DeliveryRow>`
    UPDATE deliveries d SET
      status = 'pending',
      next_attempt_at = ${queueNow},
      completed_at = NULL,
      schedule_position = CASE
        WHEN d.status = 'pending' THEN d.schedule_position
        WHEN (SELECT e.sample FROM events e WHERE e.id = d.event_id) THEN ${lastPosition}
        ELSE 0
      END
    WHERE id = ${deliveryId}
    RETURNING ${sql.join(deliveryColumns.map((column) => sql.ref(column)))}
  `.execute(trx)
  return rows[0] as DeliveryRow
}

const recoverable = ['failed', 'canceled'] as const

/** How many deliveries of a webhook, created in a span of time, failed or were canceled. */
export async function countRecoverable(
  handle: Handle,
  { webhookId, since, until }: { webhookId: string; since: Date; until: Date },
): Promise<number> {
  const { count } = await handle
    .selectFrom('deliveries')
    .select((eb) => eb.fn.countAll<string>().as('count'))
    .where('webhook_id', '=', webhookId)
    .where('id', '>=', firstIdAt('delivery', since))
    .where('created_at', '>=', since)
    .where('created_at', '<=', until)
    .where('status', 'in', recoverable)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Makes up to `limit` of them due now, oldest first from `after` on, and answers their ids in order. */
export async function recoverSome(
  trx: Trx,
  options: { webhookId: string; since: Date; until: Date; after: string; limit: number; lastPosition: number },
): Promise<string[]> {
  const { webhookId, since, until, after, limit, lastPosition } = options
  const { rows } = await sql<{ id: string }>`
    UPDATE deliveries d SET
      status = 'pending',
      next_attempt_at = ${queueNow},
      completed_at = NULL,
      schedule_position = CASE
        WHEN (SELECT e.sample FROM events e WHERE e.id = d.event_id) THEN ${lastPosition} ELSE 0
      END
    WHERE id = ANY(ARRAY(
      SELECT id FROM deliveries
      WHERE webhook_id = ${webhookId} AND id > ${after} AND id >= ${firstIdAt('delivery', since)}
        AND created_at >= ${since} AND created_at <= ${until} AND status = ANY(${[...recoverable]}::text[])
      ORDER BY id LIMIT ${limit} FOR UPDATE
    ))
    RETURNING id
  `.execute(trx)
  return rows.map(({ id }) => id).sort()
}
