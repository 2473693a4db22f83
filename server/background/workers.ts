import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import { reconcileEmails } from '../email-delivery/reconcile.ts'
import { createLoneEvents } from '../fan-out/lone-events.ts'
import { startFanOutWorker } from '../fan-out/worker.ts'
import type { Clock } from '../lib/clock.ts'
import type { Loop } from '../lib/polling-loop.ts'
import { createOutbox, type Outbox } from '../outbox/append.ts'
import type { Queue } from '../queue/queue.ts'
import { deleteOldFigures } from '../statistics/retention.ts'
import { startRollUp } from '../statistics/roll-up.ts'
import { cancelRest } from '../webhook-delivery/cancel.ts'
import { reconcile, takeOverKept } from '../webhook-delivery/reconcile.ts'
import { continueRecovery, takeOverRecovery } from '../webhook-delivery/recovery/recover.ts'
import { startAdopting } from '../webhook-delivery/take-over-older-jobs.ts'
import {
  type DeliveryWorker,
  type DeliveryWorkerOptions,
  type Leasing,
  startDeliveryWorker,
} from '../webhook-delivery/worker.ts'
import { createRetention } from './retention.ts'

export type Workers = {
  /** Makes the fan-out look for events now. */
  wakeFanOut(): void
  /** Makes the delivery worker look for due deliveries now: in this flow first, or in all flows. */
  wakeDelivery(flow?: number): void
  /** Lets requests pass events straight to the delivery worker as they are appended. */
  readonly leasing: Leasing
  /** Returns true if all workers have recently looked for work without an error. */
  alive(): boolean
  /** Stops the workers: nothing more is claimed, and attempts in flight are finished or handed back. */
  stop(deadlineMs: number): Promise<void>
}

export type WorkersOptions = Omit<DeliveryWorkerOptions, 'wakeFanOut'> & {
  queue: Queue
  db: Db
  clock: Clock
  logger: Logger
  retentionMs: number
  /** How long statistics by day are kept. Milliseconds. */
  statisticsMs: number
  /** Checks the DNS records of domains that are due, until `signal` aborts. */
  checkDomains: (means: { outbox: Outbox; signal: AbortSignal }) => Promise<unknown>
  /** Deletes expired rows of the HTTP room: idempotency keys and windows of the rate limit. */
  deleteExpiredOfHttp: () => Promise<unknown>
  /** Deletes contacts that never confirmed. Returns how many. */
  deleteUnconfirmed: (means: { outbox: Outbox }) => Promise<number>
  /** Adds older emails to what lists find emails by. Returns the number of emails. */
  indexOlderEmails: () => Promise<number>
}

const everyMinute = '* * * * *'
/** Reconciliation reads everything that is pending: 12 s for a database with 1,000,000 pending deliveries. */
const everyHour = '0 * * * *'
/** Maximum number of flows deleted in one transaction. */
const flowsAtOnce = 1_000

/** A worker without success for this long counts as not alive. Milliseconds. */
export const silenceLimitMs = 30_000

/** Starts all background work. If a part fails to start, the parts started before are stopped. */
export async function startBackgroundWorkers(options: WorkersOptions): Promise<Workers> {
  await using starting = new AsyncDisposableStack()
  const { db, queue, clock, logger } = options
  const delivery: DeliveryWorker = startDeliveryWorker({ ...options, wakeFanOut: () => fanOut.wake() })
  starting.defer(() => delivery.stop(0))
  const fanOut: Loop = startFanOutWorker({
    ...options,
    delivery,
    intervalMs: options.pollIntervalMs ?? 1_000,
  })
  starting.defer(() => fanOut.stop())

  const adopting = startAdopting({
    db,
    queue,
    intervalMs: 1_000,
    onError: (error) =>
      logger.error({ err: error }, 'moving deliveries of the previous version into their flows failed; trying again'),
    onAdopted: () => delivery.wake(),
  })
  starting.defer(() => adopting.stop())

  const rollingUp = startRollUp({
    db,
    intervalMs: 5 * (options.pollIntervalMs ?? 1_000),
    onError: (error) => logger.error({ err: error }, 'rolling up statistics failed; trying again'),
  })
  starting.defer(() => rollingUp.stop())

  await queue.kept.onLapse(async (deliveryIds) => {
    await takeOverKept({ db, queue }, deliveryIds)
    delivery.wake()
  })
  await queue.onTask('cancel', (data) => cancelRest({ db, queue }, data))
  const { retentionMs } = options
  const recovering = { db, queue, clock, retentionMs, wake: delivery.wake }
  await queue.onTask('recovery', (data) => continueRecovery(recovering, data))
  await queue.onTask('recover', (data) => takeOverRecovery(recovering, data))
  const deleteExpired = createRetention(options)
  await queue.onSchedule('retention', everyMinute, async () => {
    const expired = await deleteExpired()
    await deleteOldFigures(db, clock.now(), options.statisticsMs)
    await options.deleteExpiredOfHttp()
    if (expired.events + expired.deliveries + expired.emails > 0)
      logger.info(expired, 'deleted rows past their retention')
  })
  await queue.onSchedule('email-subjects', everyMinute, async () => {
    const emails = await options.indexOlderEmails()
    if (emails > 0) logger.info({ emails }, 'added older emails to the lists by tag and subject')
  })
  const stopping = new AbortController()
  starting.defer(() => stopping.abort())
  const outbox = createOutbox({
    clock,
    wake: () => fanOut.wake(),
    loneEvents: createLoneEvents({ clock, leasing: delivery.leasing }),
  })
  await queue.onSchedule('unconfirmed-contacts', everyMinute, async () => {
    const contacts = await options.deleteUnconfirmed({ outbox })
    if (contacts > 0) logger.info({ contacts }, 'deleted contacts that never confirmed')
  })
  await queue.onSchedule('domain-checks', everyMinute, async () => {
    await options.checkDomains({ outbox, signal: stopping.signal })
  })
  await queue.onSchedule('reconciliation', everyHour, async () => {
    while ((await queue.flows.deleteUnused(db, flowsAtOnce)) === flowsAtOnce);
    const mended = await reconcile({ db, queue })
    if (mended > 0) logger.warn({ mended }, 'pending deliveries had no job and were given one')
    const mendedEmails = await reconcileEmails({ db, queue })
    if (mendedEmails > 0) logger.warn({ mended: mendedEmails }, 'waiting emails had no job and were given one')
  })

  starting.move()
  return {
    wakeFanOut: () => fanOut.wake(),
    wakeDelivery: delivery.wake,
    leasing: delivery.leasing,
    alive: () => Math.max(fanOut.idleMs(), delivery.idleMs()) < silenceLimitMs,
    async stop(deadlineMs) {
      stopping.abort()
      await Promise.all([fanOut.stop(), adopting.stop(), rollingUp.stop(), delivery.stop(deadlineMs)])
    },
  }
}
