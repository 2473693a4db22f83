import type { Delivery, DeliveryListQuery, DeliveryWithAttempts } from '../../contract/deliveries.ts'
import { type EventTypeName, eventType } from '../../contract/event-types.ts'
import type { Page } from '../../contract/pagination.ts'
import type { WebhookTestResult } from '../../contract/webhooks.ts'
import type { Clock } from '../clock.ts'
import { afterCommit, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import { DomainError, notFound } from '../errors.ts'
import { newId } from '../ids.ts'
import { decodeCursor, pageOfRows } from '../pagination.ts'
import { priorityOf } from '../queue/lanes.ts'
import type { Queue } from '../queue/queue.ts'
import { noTracer, type Tracer } from '../tracing/tracer.ts'
import { attempt } from './attempt.ts'
import { tracedAttempt } from './attempt-span.ts'
import { cancelPending } from './cancel.ts'
import type { Exchange } from './exchange.ts'
import type { Keyring } from './keyring.ts'
import {
  type AttemptRow,
  countRecoverable,
  type DeliveryRow,
  findDelivery,
  findWebhook,
  listAttempts,
  listDeliveries,
  makeDue,
  type WebhookTarget,
} from './queries.ts'
import { retryDelaysSeconds } from './retry-schedule.ts'
import { faultOf } from './verdict.ts'

/** Use cases around deliveries. Throws DomainErrors; every call is limited to one account. */
export type DeliveryService = {
  list(handle: Handle, accountId: string, webhookId: string, query: DeliveryListQuery): Promise<Page<Delivery>>
  get(handle: Handle, accountId: string, webhookId: string, deliveryId: string): Promise<DeliveryWithAttempts>
  /** Makes the next attempt now, one sequence of attempts whatever was scheduled. */
  resend(handle: Handle, accountId: string, webhookId: string, deliveryId: string): Promise<Delivery>
  /** Has everything that failed or was canceled since `since` sent again, in the background. */
  recover(handle: Handle, accountId: string, webhookId: string, since: Date): Promise<{ count: number }>
  /** Cancels all that is pending for a webhook that was disabled or deleted, with its jobs. */
  cancelPending(trx: Trx, webhookId: string): Promise<void>
  /** Sends a sample of `type` at once, tried once and logged. */
  sendTest(handle: Handle, accountId: string, webhookId: string, type: EventTypeName): Promise<WebhookTestResult>
}

export type DeliveryServiceOptions = {
  queue: Queue
  exchange: Exchange
  keyring: Keyring
  clock: Clock
  /** Called after a commit that made deliveries due. */
  wake: () => void
  /** Records the attempts of tests, within what is being done. Default: none are recorded. */
  tracer?: Tracer
}

export function createDeliveryService(options: DeliveryServiceOptions): DeliveryService {
  const { queue, exchange, keyring, clock, tracer = noTracer } = options

  /** The webhook, enabled and kept so until the transaction ends. */
  async function enabledWebhook(trx: Trx, accountId: string, webhookId: string): Promise<WebhookTarget> {
    const webhook = await findWebhook(trx, { accountId, webhookId, lock: true })
    if (webhook === undefined) throw notFound('webhook', webhookId)
    if (webhook.status === 'disabled') {
      throw new DomainError('webhook_disabled', 'The webhook is disabled. Set its status to "enabled" first.')
    }
    return webhook
  }

  async function mustExist(handle: Handle, accountId: string, webhookId: string): Promise<WebhookTarget> {
    const webhook = await findWebhook(handle, { accountId, webhookId })
    if (webhook === undefined) throw notFound('webhook', webhookId)
    return webhook
  }

  return {
    async list(handle, accountId, webhookId, query) {
      await mustExist(handle, accountId, webhookId)
      const before = decodeCursor('delivery', query.cursor)
      const rows = await listDeliveries(handle, {
        webhookId,
        query,
        limit: query.limit + 1,
        ...(before === undefined ? {} : { before }),
      })
      return pageOfRows(rows, { limit: query.limit, idOf: (row) => row.id, toItem: toDelivery })
    },

    async get(handle, accountId, webhookId, deliveryId) {
      await mustExist(handle, accountId, webhookId)
      const row = await findDelivery(handle, { webhookId, deliveryId })
      if (row === undefined) throw notFound('delivery', deliveryId)
      const attempts = await listAttempts(handle, deliveryId)
      return { ...toDelivery(row), attempts: attempts.map(toAttempt) }
    },

    resend: (handle, accountId, webhookId, deliveryId) =>
      inTransaction(handle, async (trx) => {
        const webhook = await enabledWebhook(trx, accountId, webhookId)
        const row = await findDelivery(trx, { webhookId, deliveryId, lock: true })
        if (row === undefined) throw notFound('delivery', deliveryId)
        const claimed = await queue.claimed(trx, [deliveryId])
        // Its attempt is running or about to: that is the one asked for.
        if (row.status === 'pending' && claimed.has(deliveryId)) return toDelivery(row)
        await queue.remove(trx, [deliveryId])
        const due = await makeDue(trx, { deliveryId, lastPosition: retryDelaysSeconds.length })
        await queue.put(trx, [{ deliveryId, priority: priorityOf(webhook, null), dueAt: null }])
        afterCommit(trx, options.wake)
        return toDelivery(due)
      }),

    recover: (handle, accountId, webhookId, since) =>
      inTransaction(handle, async (trx) => {
        await enabledWebhook(trx, accountId, webhookId)
        const until = clock.now()
        const count = await countRecoverable(trx, { webhookId, since, until })
        if (count > 0) {
          await queue.addTask(trx, {
            name: 'recover',
            data: { webhookId, since: since.toISOString(), until: until.toISOString() },
          })
        }
        return { count }
      }),

    cancelPending: (trx, webhookId) => cancelPending(trx, queue, webhookId),

    async sendTest(handle, accountId, webhookId, type) {
      const webhook = await mustExist(handle, accountId, webhookId)
      const now = clock.now()
      const eventId = newId('event', now)
      const deliveryId = newId('delivery', now)
      const { traceparent } = tracer.current()
      const body = sampleBody(type, eventId, now)
      const outcome = await attempt(
        { exchange, clock, tracer },
        {
          eventId,
          body,
          url: webhook.url,
          ...keyring.keysOf(webhook, now),
          traced: tracedAttempt({ id: deliveryId, webhookId, attemptCount: 0, traceparent }),
        },
      )
      const fault = faultOf(outcome)
      await inTransaction(handle, async (trx) => {
        await trx
          .insertInto('events')
          .values({ id: eventId, account_id: accountId, type, body, sample: true, created_at: now, traceparent })
          .execute()
        await trx
          .insertInto('deliveries')
          .values({
            id: deliveryId,
            account_id: accountId,
            webhook_id: webhookId,
            event_id: eventId,
            event_type: type,
            status: fault === null ? 'succeeded' : 'failed',
            attempt_count: 1,
            schedule_position: retryDelaysSeconds.length + 1,
            created_at: now,
            completed_at: clock.now(),
            next_attempt_at: null,
          })
          .execute()
        await trx
          .insertInto('attempts')
          .values({
            delivery_id: deliveryId,
            number: 1,
            started_at: outcome.startedAt,
            duration_ms: Math.round(outcome.durationMs),
            response_status: outcome.kind === 'answered' ? outcome.status : null,
            response_body: outcome.kind === 'answered' ? outcome.body : null,
            error: fault,
          })
          .execute()
      })
      return fault === null ? { success: true, responseTime: outcome.durationMs } : { success: false, error: fault }
    },
  }
}

/** A body of the type as its example shows it, with the id and the time of now. */
function sampleBody(type: EventTypeName, eventId: string, now: Date): string {
  const { exampleBody, timeField } = eventType(type)
  return JSON.stringify({ ...exampleBody, id: eventId, [timeField]: now.toISOString() })
}

function toDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    eventId: row.event_id,
    eventType: row.event_type as EventTypeName,
    status: row.status,
    attemptCount: row.attempt_count,
    nextAttemptAt: row.next_attempt_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    completedAt: row.completed_at?.toISOString() ?? null,
  }
}

function toAttempt(row: AttemptRow): DeliveryWithAttempts['attempts'][number] {
  return {
    number: row.number,
    startedAt: row.started_at.toISOString(),
    durationMs: row.duration_ms,
    responseStatus: row.response_status,
    responseBody: row.response_body,
    error: row.error,
  }
}
