import { type Selectable, sql } from 'kysely'
import type { Db, Handle, Trx } from '../../database/connection.ts'
import type { WebhookRecoveriesTable } from '../../database/tables/deliveries.ts'
import type { PollingPosition } from '../../outbox/positions.ts'
import { queueNow } from '../../queue/queue.ts'
import { newId } from '../../shared/ids.ts'

export type RecoveryRow = Selectable<WebhookRecoveriesTable>

export type NewRecovery = Pick<RecoveryRow, 'account_id' | 'webhook_id' | 'since' | 'until' | 'found' | 'found_all'> & {
  types: string[] | null
}

export async function insertRecovery(trx: Trx, recovery: NewRecovery, at: Date): Promise<RecoveryRow> {
  return trx
    .insertInto('webhook_recoveries')
    .values({ ...recovery, id: newId('recovery', at), created_at: at, last_position: null, completed_at: null })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function findRunning(
  handle: Handle,
  { accountId, webhookId }: { accountId: string; webhookId: string },
): Promise<RecoveryRow | undefined> {
  return handle
    .selectFrom('webhook_recoveries')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('webhook_id', '=', webhookId)
    .where('status', '=', 'running')
    .executeTakeFirst()
}

export type RecoveryKey = { accountId: string; recoveryId: string }

/**
 * Returns a recovery, or undefined.
 *
 * @param options.lock Prevents others from continuing or ending it until the transaction ends. Default: false.
 */
export async function findRecovery(
  handle: Handle,
  { accountId, recoveryId }: RecoveryKey,
  { lock = false }: { lock?: boolean } = {},
): Promise<RecoveryRow | undefined> {
  return handle
    .selectFrom('webhook_recoveries')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('id', '=', recoveryId)
    .$if(lock, (query) => query.forUpdate())
    .executeTakeFirst()
}

/** Returns up to `limit` recoveries of a webhook with ids below `before`, the newest first. */
export async function selectRecoveries(
  handle: Handle,
  { accountId, webhookId, before, limit }: { accountId: string; webhookId: string; before?: string; limit: number },
): Promise<RecoveryRow[]> {
  return handle
    .selectFrom('webhook_recoveries')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('webhook_id', '=', webhookId)
    .$if(before !== undefined, (query) => query.where('id', '<', before as string))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Sets the last position that a recovery looks at, unless it is set. */
export async function setLastPosition(
  handle: Handle,
  { accountId, recoveryId }: RecoveryKey,
  lastPosition: number,
): Promise<void> {
  await handle
    .updateTable('webhook_recoveries')
    .set({ last_position: String(lastPosition) })
    .where('account_id', '=', accountId)
    .where('id', '=', recoveryId)
    .where('last_position', 'is', null)
    .execute()
}

/** Records a batch; after the last one, also the end of the recovery. */
export async function recordProgress(
  trx: Trx,
  { account_id, id }: RecoveryRow,
  { place, made, isLast, task }: { place: PollingPosition; made: number; isLast: boolean; task: number },
): Promise<void> {
  await sql`
    UPDATE webhook_recoveries SET
      done = done + ${made},
      found = CASE WHEN ${isLast} THEN done + ${made} ELSE greatest(found, done + ${made}) END,
      found_all = found_all OR ${isLast},
      at_position = ${place.position},
      at_id = ${place.id},
      task = ${task},
      status = CASE WHEN ${isLast} THEN 'completed' ELSE status END,
      completed_at = CASE WHEN ${isLast} THEN ${queueNow} END
    WHERE account_id = ${account_id} AND id = ${id}
  `.execute(trx)
}

/** Ends the running recovery, if any, of a webhook that this transaction disables or deletes. */
export async function cancelRecovery(trx: Trx, webhookId: string): Promise<void> {
  await sql`
    UPDATE webhook_recoveries SET status = 'canceled', completed_at = ${queueNow}
    WHERE (account_id, webhook_id) = (SELECT account_id, id FROM webhooks WHERE id = ${webhookId})
      AND status = 'running'
  `.execute(trx)
}

/** Ends a recovery whose webhook is disabled or deleted. */
export async function endCanceled(trx: Trx, { account_id, id }: RecoveryRow): Promise<void> {
  await sql`
    UPDATE webhook_recoveries SET status = 'canceled', completed_at = ${queueNow}
    WHERE account_id = ${account_id} AND id = ${id}
  `.execute(trx)
}

type NewDelivery = { id: string; eventId: string; eventType: string }

/** Locks those of the events that still exist against deletion, and returns their ids. */
export async function keepEvents(trx: Trx, eventIds: readonly string[]): Promise<Set<string>> {
  if (eventIds.length === 0) return new Set()
  const rows = await trx
    .selectFrom('events')
    .select('id')
    .where('id', '=', sql<string>`ANY(${eventIds}::text[])`)
    .orderBy('id')
    .forKeyShare()
    .execute()
  return new Set(rows.map(({ id }) => id))
}

export async function insertDeliveries(
  trx: Trx,
  { account_id, webhook_id }: RecoveryRow,
  deliveries: readonly NewDelivery[],
  at: Date,
): Promise<void> {
  if (deliveries.length === 0) return
  await sql`
    INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, next_attempt_at, created_at)
    SELECT id, ${account_id}, ${webhook_id}, event_id, event_type, ${queueNow}, ${at}
    FROM unnest(
      ${deliveries.map(({ id }) => id)}::text[],
      ${deliveries.map(({ eventId }) => eventId)}::text[],
      ${deliveries.map(({ eventType }) => eventType)}::text[]
    ) AS d (id, event_id, event_type)
  `.execute(trx)
}

/** Starts a new run of those deliveries that failed or were canceled. Returns their ids in order. */
export async function startNewRuns(trx: Trx, deliveryIds: readonly string[]): Promise<string[]> {
  if (deliveryIds.length === 0) return []
  const { rows } = await sql<{ id: string }>`
    UPDATE deliveries SET
      status = 'pending', next_attempt_at = ${queueNow}, completed_at = NULL, run = run + 1, schedule_position = 0
    WHERE id = ANY(ARRAY(
      SELECT id FROM deliveries WHERE id = ANY(${deliveryIds}::text[]) AND status IN ('failed', 'canceled')
      ORDER BY id FOR UPDATE
    ))
    RETURNING id
  `.execute(trx)
  return rows.map(({ id }) => id).sort()
}

/** Deletes recoveries that ended before `until`. */
export async function deleteOldRecoveries(db: Db, until: Date): Promise<void> {
  await db.deleteFrom('webhook_recoveries').where('status', '<>', 'running').where('completed_at', '<', until).execute()
}
