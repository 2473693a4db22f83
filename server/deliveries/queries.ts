import { type Selectable, sql } from 'kysely'
import type { DeliveryListQuery } from '../../contract/deliveries.ts'
import type { Mode } from '../../contract/mode.ts'
import { type FittingPage, idsWithin, selectFitting } from '../database/bounded-lists.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import type { AttemptsTable, DeliveriesTable } from '../database/tables/deliveries.ts'
import { queueNow } from '../queue/queue.ts'
import { firstIdAt, idAboveThoseBefore } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import type { ExchangeOutcome } from '../webhook-delivery/attempt/exchange.ts'
import { retryDelaysSeconds } from '../webhook-delivery/attempt/retry-schedule.ts'

export const deliveryColumns = [
  'id',
  'event_id',
  'event_type',
  'status',
  'attempt_count',
  'next_attempt_at',
  'created_at',
  'completed_at',
] as const

/** True if the event of a delivery was made up for a test. An event is kept as long as its deliveries. */
export const isSample = sql<boolean>`(SELECT e.sample FROM events e WHERE e.id = deliveries.event_id)`
/** The mode of a delivery, which is that of its event. An event is kept as long as its deliveries. */
export const modeOfEvent = sql<Mode>`coalesce((SELECT e.mode FROM events e WHERE e.id = deliveries.event_id), 'live')`

const shownColumns = sql`${sql.join(deliveryColumns.map((column) => sql.ref(`deliveries.${column}`)))},
  ${isSample} AS sample, ${modeOfEvent} AS mode`

export type DeliveryRow = Pick<Selectable<DeliveriesTable>, (typeof deliveryColumns)[number]> & {
  sample: boolean
  mode: Mode
}

/**
 * Returns up to `limit` deliveries of a webhook with ids below `before`, the newest first. With a filter, it looks
 * through 10,000 at most: see `selectFitting`.
 */
export async function listDeliveries(
  handle: Handle,
  { webhookId, query, before, limit }: { webhookId: string; query: DeliveryListQuery; before?: string; limit: number },
): Promise<FittingPage<DeliveryRow>> {
  const { status, eventType, since, until } = query
  const bounds = [
    idsWithin(['webhook_id', 'id'], webhookId, {
      above: since === undefined ? undefined : belowIdsAt(new Date(since)),
      below: [before, until === undefined ? undefined : idAboveThoseBefore('delivery', new Date(until))],
    }),
  ]
  // Few: they have an index of their own.
  if (status !== undefined && status !== 'succeeded') bounds.push(sql`status <> 'succeeded'`)
  const filters = [sql`true`]
  if (status !== undefined) filters.push(sql`status = ${status}`)
  if (eventType !== undefined) filters.push(sql`event_type = ${eventType}`)
  // The time in an id is never before the creation, and can be after it.
  if (since !== undefined) filters.push(sql`created_at >= ${new Date(since)}`)
  if (until !== undefined) filters.push(sql`created_at < ${new Date(until)}`)
  return selectFitting(handle, {
    rows: sql`SELECT * FROM deliveries WHERE ${sql.join(bounds, sql` AND `)} ORDER BY webhook_id DESC, id DESC`,
    fits: sql`${sql.join(filters, sql` AND `)}`,
    as: 'deliveries',
    columns: shownColumns,
    limit,
  })
}

/** Returns an id below all of deliveries created from `at` on. */
function belowIdsAt(at: Date): string {
  // Without its last character it is below every id that begins with the same time.
  return firstIdAt('delivery', at).slice(0, -1)
}

export async function findDelivery(
  handle: Handle,
  { webhookId, deliveryId, lock = false }: { webhookId: string; deliveryId: string; lock?: boolean },
): Promise<DeliveryRow | undefined> {
  return handle
    .selectFrom('deliveries')
    .select([...deliveryColumns, isSample.as('sample'), modeOfEvent.as('mode')])
    .where('id', '=', deliveryId)
    .where('webhook_id', '=', webhookId)
    .$if(lock, (query) => query.forUpdate())
    .executeTakeFirst()
}

/** Returns the event of a delivery as it is pushed. */
export async function findEventOf(
  handle: Handle,
  { webhookId, deliveryId }: { webhookId: string; deliveryId: string },
): Promise<{ body: string; mode: Mode } | undefined> {
  return handle
    .selectFrom('deliveries')
    .innerJoin('events', 'events.id', 'deliveries.event_id')
    .select(['events.body', 'events.mode'])
    .where('deliveries.id', '=', deliveryId)
    .where('deliveries.webhook_id', '=', webhookId)
    .executeTakeFirst()
}

/** `url` is the one that the webhook had then. Null: not known. */
export type AttemptRow = Omit<Selectable<AttemptsTable>, 'delivery_id'> & { url: string | null }

const selectAttempts = prepare<{ webhookId: string; deliveryId: string }, AttemptRow>({ name: 'find_attempts' })`
  SELECT number, started_at, duration_ms, response_status, response_body, error, reposted, webhook_version, (
    SELECT url FROM webhook_urls
    WHERE webhook_id = ${'webhookId'} AND version <= attempts.webhook_version ORDER BY version DESC LIMIT 1
  ) AS url
  FROM attempts WHERE delivery_id = ${'deliveryId'} ORDER BY number
`

/** Returns the attempts of a delivery, the first one first. */
export async function listAttempts(
  handle: Handle,
  delivery: { webhookId: string; deliveryId: string },
): Promise<AttemptRow[]> {
  return selectAttempts(handle, delivery)
}

/**
 * Makes a delivery due now. A pending delivery keeps its position in the schedule. A delivery that has ended begins a
 * new run of the schedule; a sample is tried only once. An attempt of the previous run that is still in flight belongs
 * to that run and does not count for the new one.
 */
export async function makeDue(
  trx: Trx,
  { deliveryId, lastPosition }: { deliveryId: string; lastPosition: number },
): Promise<DeliveryRow> {
  const { rows } = await sql<DeliveryRow>`
    UPDATE deliveries SET
      status = 'pending',
      next_attempt_at = ${queueNow},
      completed_at = NULL,
      run = CASE WHEN status = 'pending' THEN run ELSE run + 1 END,
      schedule_position = CASE
        WHEN status = 'pending' THEN schedule_position
        WHEN ${isSample} THEN ${lastPosition}
        ELSE 0
      END
    WHERE id = ${deliveryId}
    RETURNING ${sql.join(deliveryColumns.map((column) => sql.ref(column)))}, ${isSample} AS sample, ${modeOfEvent} AS mode
  `.execute(trx)
  return rows[0] as DeliveryRow
}

export type SampleDelivery = {
  scope: Scope
  webhookId: string
  /** The version of the webhook that was used. */
  webhookVersion: number
  event: { id: string; type: string; body: string; traceparent: string | null; createdAt: Date }
  delivery: { id: string; succeeded: boolean; completedAt: Date }
  attempt: {
    outcome: Pick<ExchangeOutcome, 'startedAt' | 'durationMs' | 'reposted'>
    /** Null: there was no response. */
    response: { status: number; body: string | null } | null
    /** Why the attempt failed. Null: it succeeded. */
    fault: string | null
  }
}

/** Inserts a sample that was sent: its event, its delivery and its only attempt. */
export async function insertSample(
  trx: Trx,
  { scope, webhookId, webhookVersion, event, delivery, attempt }: SampleDelivery,
): Promise<void> {
  await trx
    .insertInto('events')
    .values({
      id: event.id,
      account_id: scope.accountId,
      mode: scope.mode,
      type: event.type,
      body: event.body,
      sample: true,
      created_at: event.createdAt,
      traceparent: event.traceparent,
    })
    .execute()
  await trx
    .insertInto('deliveries')
    .values({
      id: delivery.id,
      account_id: scope.accountId,
      webhook_id: webhookId,
      event_id: event.id,
      event_type: event.type,
      status: delivery.succeeded ? 'succeeded' : 'failed',
      attempt_count: 1,
      schedule_position: retryDelaysSeconds.length + 1,
      created_at: event.createdAt,
      completed_at: delivery.completedAt,
      next_attempt_at: null,
      // A test does not wait in a queue.
      queued_at: event.createdAt,
      claimed_at: event.createdAt,
    })
    .execute()
  await trx
    .insertInto('attempts')
    .values({
      delivery_id: delivery.id,
      number: 1,
      started_at: attempt.outcome.startedAt,
      duration_ms: Math.round(attempt.outcome.durationMs),
      response_status: attempt.response?.status ?? null,
      response_body: attempt.response?.body ?? null,
      error: attempt.fault,
      reposted: attempt.outcome.reposted,
      webhook_version: webhookVersion,
    })
    .execute()
}
