import type {
  Delivery,
  DeliveryListQuery,
  DeliveryWithAttempts,
  RecoverRequest,
  Recovery,
  StartedRecovery,
} from '../../contract/deliveries.ts'
import { type EventTypeName, eventType, isEventTypeName } from '../../contract/event-types.ts'
import type { Event } from '../../contract/events.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import type { WebhookTestResult } from '../../contract/webhooks.ts'
import { record } from '../audit-log/record.ts'
import { afterCommit, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import { nextSequence } from '../lib/sequence.ts'
import { noTracer, type Tracer } from '../observability/tracing/tracer.ts'
import type { Queue } from '../queue/queue.ts'
import { DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { attempt, unsignedHeaders } from '../webhook-delivery/attempt/attempt.ts'
import { tracedAttempt } from '../webhook-delivery/attempt/attempt-span.ts'
import { type Exchange, loggedAnswer } from '../webhook-delivery/attempt/exchange.ts'
import type { Keyring } from '../webhook-delivery/attempt/keyring.ts'
import { retryDelaysSeconds } from '../webhook-delivery/attempt/retry-schedule.ts'
import { faultOf } from '../webhook-delivery/attempt/verdict.ts'
import { cancelPage, cancelPending } from '../webhook-delivery/cancel.ts'
import { startRecovery } from '../webhook-delivery/recovery/recover.ts'
import {
  countRecoverable,
  knownSince,
  lastPositionOf,
  type RetentionMeans,
} from '../webhook-delivery/recovery/recoverable.ts'
import {
  findRecovery,
  findRunning,
  type RecoveryRow,
  selectRecoveries,
} from '../webhook-delivery/recovery/recovery-rows.ts'
import { endRunOfFailures } from '../webhook-delivery/settlement/webhook-health.ts'
import type { WebhookChanges } from '../webhook-delivery/webhook-changes.ts'
import { findWebhookTarget, nameOfWebhook, type WebhookTarget } from '../webhook-delivery/webhook-targets.ts'
import {
  type AttemptRow,
  type DeliveryRow,
  findDelivery,
  findEventOf,
  insertSample,
  listAttempts,
  listDeliveries,
  makeDue,
} from './queries.ts'
import { findWaitingDelivery, waitOf } from './waiting.ts'

/** Use cases of deliveries. All throw DomainErrors. Every call is limited to one mode of one account. */
export type DeliveryService = {
  list(handle: Handle, scope: Scope, webhookId: string, query: DeliveryListQuery): Promise<Page<Delivery>>
  get(handle: Handle, scope: Scope, webhookId: string, deliveryId: string): Promise<DeliveryWithAttempts>
  /** Returns the event of a delivery, a sample too, as it is pushed, with its mode. */
  getEvent(handle: Handle, scope: Scope, webhookId: string, deliveryId: string): Promise<Event>
  /** Makes the delivery due now, whatever was scheduled, unless its attempt is running. */
  resend(handle: Handle, scope: Scope, webhookId: string, deliveryId: string): Promise<Delivery>
  /**
   * Sends events again that the webhook has missed, in the background: events of a time range that the webhook, as it
   * is now, receives, and that have no delivery to it or a failed or canceled one. Samples and events past the
   * retention are left out.
   *
   * One recovery of a webhook runs at a time. A request for the running one returns it with `started` false; any other
   * request is refused with `conflict`.
   */
  recover(handle: Handle, scope: AuthoredScope, webhookId: string, request: RecoverRequest): Promise<StartedRecovery>
  getRecovery(handle: Handle, scope: Scope, webhookId: string, recoveryId: string): Promise<Recovery>
  /** Newest first. */
  listRecoveries(handle: Handle, scope: Scope, webhookId: string, query: PageQuery): Promise<Page<Recovery>>
  /** Cancels all pending deliveries of a webhook that was disabled or deleted, and removes their jobs. */
  cancelPending(trx: Trx, webhookId: string): Promise<void>
  /**
   * Cancels up to 5,000 of what is still pending for a disabled webhook. Returns true if there may be more: it must not
   * be enabled yet.
   */
  cancelPage(trx: Trx, webhookId: string): Promise<boolean>
  /** Sends a sample of `type` at once. It is tried only once, and logged. */
  sendTest(handle: Handle, scope: Scope, webhookId: string, type: EventTypeName): Promise<WebhookTestResult>
}

export type DeliveryServiceOptions = RetentionMeans & {
  queue: Queue
  exchange: Exchange
  keyring: Keyring
  /** Called after a commit that made deliveries of a flow due. */
  wake: (flow: number) => void
  /** Records the attempts of tests in the current trace. Default: records nothing. */
  tracer?: Tracer
  /** Consulted before each test, so that no test uses an outdated webhook. */
  webhookChanges: Pick<WebhookChanges, 'mayBegin'>
}

export function createDeliveryService(options: DeliveryServiceOptions): DeliveryService {
  const { queue, exchange, keyring, clock, tracer = noTracer, webhookChanges } = options

  /** Returns the webhook if it is enabled, and locks it, so that it stays enabled until the transaction ends. */
  async function enabledWebhook(
    trx: Trx,
    scope: Scope,
    webhookId: string,
    lock: 'share' | 'change' = 'share',
  ): Promise<WebhookTarget> {
    const webhook = await findWebhookTarget(trx, { scope, webhookId, lock })
    if (webhook === undefined) throw notFound('webhook', webhookId)
    if (webhook.status === 'disabled') {
      throw new DomainError('webhook_disabled', 'The webhook is disabled. Set its status to "enabled" first.')
    }
    return webhook
  }

  async function auditRecovery(
    trx: Trx,
    { accountId, author, mode }: AuthoredScope,
    webhook: WebhookTarget,
    { id: recoveryId, since, until }: Recovery,
  ): Promise<void> {
    const target = { type: 'webhook', id: webhook.id, name: nameOfWebhook(webhook) } as const
    const details = { mode, recoveryId, since, ...(until !== null && { until }) }
    await record(trx, { accountId, at: clock.now(), author, action: 'webhook.recovery_started', target, details })
  }

  async function mustExist(handle: Handle, scope: Scope, webhookId: string): Promise<WebhookTarget> {
    const webhook = await findWebhookTarget(handle, { scope, webhookId })
    if (webhook === undefined) throw notFound('webhook', webhookId)
    return webhook
  }

  return {
    async list(handle, scope, webhookId, query) {
      await mustExist(handle, scope, webhookId)
      const before = decodeCursor('delivery', query.cursor)
      const { rows, lookedTo } = await listDeliveries(handle, {
        webhookId,
        query,
        limit: query.limit + 1,
        ...(before === undefined ? {} : { before }),
      })
      return pageOfRows(rows, { limit: query.limit, idOf: (row) => row.id, toItem: toDelivery, lookedTo })
    },

    async get(handle, scope, webhookId, deliveryId) {
      await mustExist(handle, scope, webhookId)
      const row = await findWaitingDelivery({ handle, queue }, { webhookId, deliveryId })
      if (row === undefined) throw notFound('delivery', deliveryId)
      const attempts = await listAttempts(handle, { webhookId, deliveryId })
      return { ...toDelivery(row), ...waitOf(row), attempts: attempts.map((one) => toAttempt(row, one)) }
    },

    async getEvent(handle, scope, webhookId, deliveryId) {
      await mustExist(handle, scope, webhookId)
      const row = await findEventOf(handle, { webhookId, deliveryId })
      if (row === undefined) throw notFound('delivery', deliveryId)
      return { ...JSON.parse(row.body), mode: row.mode }
    },

    resend: (handle, scope, webhookId, deliveryId) =>
      inTransaction(handle, async (trx) => {
        const webhook = await enabledWebhook(trx, scope, webhookId)
        const row = await findDelivery(trx, { webhookId, deliveryId, lock: true })
        if (row === undefined) throw notFound('delivery', deliveryId)
        const claimed = await queue.claimed(trx, [deliveryId])
        // Its attempt is running or about to: that is the attempt the client asks for.
        if (row.status === 'pending' && claimed.has(deliveryId)) return toDelivery(row)
        await queue.remove(trx, [deliveryId])
        const due = await makeDue(trx, { deliveryId, lastPosition: retryDelaysSeconds.length })
        await queue.flows.put(trx, [{ deliveryId, flow: webhook.flow, dueAt: null }])
        afterCommit(trx, () => options.wake(webhook.flow))
        return toDelivery(due)
      }),

    recover: (handle, scope, webhookId, request) =>
      inTransaction(handle, async (trx) => {
        const { accountId } = scope
        const running = await findRunning(trx, { accountId, webhookId })
        if (running !== undefined) {
          await enabledWebhook(trx, scope, webhookId, 'share')
          return sameRecovery(running, request)
        }
        // Counted before the webhook is locked, so that settlements of the webhook do not wait for the count.
        const span = { since: new Date(request.since), until: toDate(request.until), types: request.types ?? null }
        const { count, isExact } = await countRecoverable(trx, await mustExist(trx, scope, webhookId), {
          ...span,
          since: knownSince(span.since, options),
          accountId,
          lastPosition: await lastPositionOf(trx, accountId),
        })
        const webhook = await enabledWebhook(trx, scope, webhookId, 'change')
        const other = await findRunning(trx, { accountId, webhookId })
        if (other !== undefined) return sameRecovery(other, request)
        const values = { ...span, account_id: accountId, webhook_id: webhookId, found: count, found_all: isExact }
        const started = toRecovery(await startRecovery(trx, queue, values, clock.now()))
        await auditRecovery(trx, scope, webhook, started)
        return { ...started, started: true }
      }),

    async getRecovery(handle, scope, webhookId, recoveryId) {
      await mustExist(handle, scope, webhookId)
      const row = await findRecovery(handle, { accountId: scope.accountId, recoveryId })
      if (row === undefined || row.webhook_id !== webhookId) throw notFound('recovery', recoveryId)
      return toRecovery(row)
    },

    async listRecoveries(handle, scope, webhookId, { limit, cursor }) {
      await mustExist(handle, scope, webhookId)
      const before = decodeCursor('recovery', cursor)
      const rows = await selectRecoveries(handle, {
        accountId: scope.accountId,
        webhookId,
        limit: limit + 1,
        ...(before === undefined ? {} : { before }),
      })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toRecovery })
    },

    cancelPending: (trx, webhookId) => cancelPending(trx, queue, [webhookId]),
    cancelPage: (trx, webhookId) => cancelPage(trx, queue, webhookId),

    async sendTest(handle, scope, webhookId, type) {
      let webhook: WebhookTarget
      let readAt: number
      // There is no `await` between the response of the database and the exchange, so no change can come in between.
      do {
        readAt = nextSequence()
        webhook = await mustExist(handle, scope, webhookId)
      } while (!webhookChanges.mayBegin(webhookId, { version: webhook.version, readAt }, true))
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
          mode: scope.mode,
          url: webhook.url,
          sample: true,
          ...keyring.keysOf(webhook, now),
          traced: tracedAttempt({ id: deliveryId, webhookId, attemptCount: 0, traceparent }),
        },
      )
      const fault = faultOf(outcome)
      const answer = loggedAnswer(outcome)
      await inTransaction(handle, async (trx) => {
        // The webhook is locked first, as settlements do before they write deliveries: see lock-order.ts.
        if (fault === null) await endRunOfFailures(trx, { webhookId, url: webhook.url })
        await insertSample(trx, {
          scope,
          webhookId,
          webhookVersion: webhook.version,
          event: { id: eventId, type, body, traceparent, createdAt: now },
          delivery: { id: deliveryId, succeeded: fault === null, completedAt: clock.now() },
          attempt: { outcome, response: answer, fault },
        })
      })
      return fault === null ? { success: true, responseTime: outcome.durationMs } : { success: false, error: fault }
    },
  }
}

/** Returns the example body of the event type, with this id and the current time. */
function sampleBody(type: EventTypeName, eventId: string, now: Date): string {
  const { exampleBody, timeField } = eventType(type)
  return JSON.stringify({ ...exampleBody, id: eventId, [timeField]: now.toISOString() })
}

function toDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    eventId: row.event_id,
    eventType: row.event_type as EventTypeName,
    mode: row.mode,
    status: row.status,
    attemptCount: row.attempt_count,
    sample: row.sample,
    nextAttemptAt: row.next_attempt_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    completedAt: row.completed_at?.toISOString() ?? null,
  }
}

function toDate(time: string | undefined): Date | null {
  return time === undefined ? null : new Date(time)
}

/** Returns the running recovery if the request is for the same one. Otherwise throws `conflict`. */
function sameRecovery(running: RecoveryRow, { since, until, types }: RecoverRequest): StartedRecovery {
  const isSame =
    running.since.getTime() === new Date(since).getTime() &&
    running.until?.getTime() === toDate(until)?.getTime() &&
    String(running.types?.toSorted()) === String(types?.toSorted())
  if (isSame) return { ...toRecovery(running), started: false }
  throw new DomainError(
    'conflict',
    `Another recovery of this webhook is running: "${running.id}". Wait until GET /v1/webhooks/${running.webhook_id}/recoveries/${running.id} says that it is completed, then start this one.`,
  )
}

function toRecovery(row: RecoveryRow): Recovery {
  return {
    id: row.id,
    status: row.status,
    since: row.since.toISOString(),
    until: row.until?.toISOString() ?? null,
    types: row.types?.filter(isEventTypeName) ?? null,
    count: row.found,
    countIsExact: row.found_all,
    done: row.done,
    createdAt: row.created_at.toISOString(),
    completedAt: row.completed_at?.toISOString() ?? null,
  }
}

function toAttempt(
  { event_id: eventId, mode, sample }: DeliveryRow,
  row: AttemptRow,
): DeliveryWithAttempts['attempts'][number] {
  return {
    number: row.number,
    startedAt: row.started_at.toISOString(),
    request:
      row.webhook_version === null
        ? null
        : { url: row.url, headers: unsignedHeaders({ eventId, mode, sample }, row.started_at) },
    durationMs: row.duration_ms,
    responseStatus: row.response_status,
    responseBody: row.response_body,
    error: row.error,
    reposted: row.reposted,
  }
}
