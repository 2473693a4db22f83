import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { createEventLoopLoad } from '../lib/event-loop-load.ts'
import { startLoop } from '../lib/polling-loop.ts'
import { timeout } from '../lib/timer.ts'
import type { Tracer } from '../observability/tracing/tracer.ts'
import type { Queue } from '../queue/queue.ts'
import { attempt, faultOfOurs } from './attempt/attempt.ts'
import { tracedAttempt } from './attempt/attempt-span.ts'
import type { Exchange, ExchangeOutcome } from './attempt/exchange.ts'
import type { Keyring } from './attempt/keyring.ts'
import { type Verdict, verdictOf } from './attempt/verdict.ts'
import { startHeldDeliveries } from './held-deliveries.ts'
import type { DueDelivery } from './load-deliveries.ts'
import { startClaiming } from './scheduling/claim-loop.ts'
import { signalOf } from './scheduling/congestion-signal.ts'
import type { HeldDelivery } from './scheduling/deliveries-in-hand.ts'
import { startFlowScan } from './scheduling/flow-scan.ts'
import { createIntakes, type Intakes } from './scheduling/intake.ts'
import { createScheduler, defaultSettings } from './scheduling/scheduler.ts'
import type { FlowName, Request } from './scheduling/scheduler-types.ts'
import { watchSilences } from './scheduling/silence-timer.ts'
import { startDeliverySettler } from './settlement/delivery-settler.ts'
import type { LeasedEvent } from './settlement/leased-event.ts'
import { startLeasedEvents } from './settlement/leased-event-holder.ts'
import type { Settlement } from './settlement/settlement-types.ts'
import { type FlowCensus, startStatistics } from './statistics.ts'
import type { WebhookChanges } from './webhook-changes.ts'
import { createWebhookReads } from './webhook-reads.ts'

/** Deliveries that wait in memory for longer are handed back to the queue. Milliseconds. */
const handAgeMs = 1_000
/**
 * No attempt begins under a claim or lease that this process has not been known to have for this long: another may have
 * it by then. They lapse after 20 s without a heartbeat, which is sent every 5 s. Milliseconds.
 */
const trustedMs = 15_000
/** A flow without work is forgotten after this time, together with its limit. Milliseconds. */
const forgetAfterMs = 600_000

export type DeliveryWorkerOptions = {
  db: Db
  queue: Queue
  exchange: Exchange
  keyring: Keyring
  clock: Clock
  logger: Logger
  /** Deliveries in flight or being settled at once, over all accounts. */
  places: number
  /** Maximum number of requests in flight to one URL of an account. */
  endpointMax: number
  /** Milliseconds between polls when nothing wakes the worker. Default 1,000. */
  pollIntervalMs?: number
  /** Called after every attempt. */
  onAttempt?: (outcome: ExchangeOutcome, verdict: Verdict) => void
  /** Called for each claimed delivery with the time it had waited in the queue since it was due. Seconds. */
  onWaited?: (seconds: number) => void
  /** Called once, with a function that returns the current counts of the worker. */
  watchFlows?: (census: () => DeliveryCensus) => void
  /** Records the attempts of traced events. Default: records nothing. */
  tracer?: Tracer
  /** Consulted before each attempt, so that no attempt uses an outdated webhook. */
  webhookChanges: WebhookChanges
  /** Called when leased events are back in the outbox and need the fan-out. */
  wakeFanOut: () => void
}

export type DeliveryCensus = FlowCensus & { places: number }

export type DeliveryWorker = {
  /** Makes the worker look for due deliveries now: in this flow first, or in all flows. */
  wake(flow?: number): void
  /** Reports that `count` due deliveries were put into a flow. */
  offer(name: FlowName, count: number): void
  /** Lets the fan-out of this process pass events straight to the worker, without the queue. */
  readonly intakes: Pick<Intakes, 'open'>
  /** The lease that identifies this process in the outbox. */
  readonly lease: string
  /** Returns true while an event is leased to this process and not yet written. */
  isOpen(eventId: string): boolean
  /** Lets the requests of this process pass events straight to the worker as they are appended. */
  readonly leasing: Leasing
  /** Returns the milliseconds since the worker last looked at the queue and settled without an error. */
  idleMs(): number
  /**
   * Stops the worker: claims no more, hands back waiting deliveries, and lets attempts in flight run until the
   * deadline. Attempts that still run at the deadline are aborted, and their deliveries are handed back.
   */
  stop(deadlineMs: number): Promise<void>
}

/** Leases events to this process as they are appended, if their deliveries can probably start at once. */
export type Leasing = {
  /** Returns the lease for the next event of an account. Null: the event is left to the fan-out. */
  lease(accountId: string): string | null
  /**
   * Takes over committed events that carry the lease. Events with a delivery that should not be in memory go to the
   * fan-out.
   */
  take(events: readonly LeasedEvent[]): void
  /** Gives leased events up, so that the fan-out takes them. */
  release(eventIds: readonly string[]): void
}

/**
 * Starts delivering. The scheduler chooses the flow of the next request. Its delivery is taken from memory, or claimed
 * from the queue. Each delivery is sent by POST, and attempts are settled in batches. See
 * docs/architecture/delivery-engine.md.
 */
export function startDeliveryWorker(options: DeliveryWorkerOptions): DeliveryWorker {
  const { queue, keyring, clock, logger, places, endpointMax, webhookChanges } = options
  const intervalMs = options.pollIntervalMs ?? 1_000

  const scheduler = createScheduler({
    ...defaultSettings,
    places,
    flowMax: endpointMax,
    hostMax: 2 * endpointMax,
    handMax: 2 * places,
  })
  const isBusy = createEventLoopLoad()
  const running = new Set<Promise<void>>()
  const lease = randomUUID()
  const breakOff = new AbortController()
  const webhooks = createWebhookReads({
    ...options,
    signal: breakOff.signal,
    intervalMs,
    onError: report('reading webhooks'),
  })
  let isStopping = false
  let stopped: Promise<void> | undefined

  /**
   * Starts every request that the scheduler allows: at once if the delivery is in memory, otherwise after its claim.
   */
  function pump(): void {
    if (isStopping) return
    for (let request = scheduler.next(); request !== null; request = scheduler.next()) {
      const name = scheduler.nameOf(request)
      const one = request.from === 'hand' ? held.takeFromHand(request.flow) : undefined
      if (one === undefined) claiming.want(request, name)
      else begin(one, request)
      if (one !== undefined && scheduler.isToRefill(name)) claiming.refill(name)
    }
    intakes.wake()
    silences.watch()
  }

  function begin(one: HeldDelivery, request: Request): void {
    one.request = request
    const attempting = attemptOne(one, request).finally(() => running.delete(attempting))
    running.add(attempting)
  }

  async function attemptOne(one: HeldDelivery, request: Request): Promise<void> {
    const { delivery } = one
    let isFresh = false
    // There is no `await` between this check and the start of the exchange, so no change can be announced in between.
    while (!webhookChanges.mayBegin(delivery.webhookId, delivery.webhook, isFresh)) {
      const webhook = await webhooks.read(delivery.webhookId).catch(() => 'stopping' as const)
      if (webhook === 'stopping') return
      if (webhook === null) return putBack(one, request)
      // To disable it cancels the delivery, and to enable it again is another change.
      const mayBeCanceled = webhook.version > delivery.webhook.version + 1
      delivery.webhook = webhook
      // Or its deliveries now wait in another flow.
      if (mayBeCanceled || String(webhook.flow) !== request.flow) return putBack(one, request)
      isFresh = true
    }
    if (performance.now() - one.aliveAt > trustedMs) return putBack(one, request)
    scheduler.begin(request, performance.now())
    const startedAt = clock.now()
    const outcome = await send(delivery).catch((error): ExchangeOutcome => {
      report('an attempt')(error)
      return { ...faultOfOurs, startedAt }
    })
    scheduler.end(request, signalOf(outcome, isBusy()))
    // The shutdown aborted the request, so it is no failure of the endpoint and does not count as an attempt. The
    // delivery stays held until `stop` hands it back.
    if (breakOff.signal.aborted && outcome.kind === 'failed') return
    const verdict = verdictOf(outcome, delivery.schedulePosition + 1)
    const settlement = { delivery, outcome, verdict }
    record(one, settlement)
    statistics.add(settlement)
    options.onAttempt?.(outcome, verdict)
    pump()
  }

  function record(one: HeldDelivery, settlement: Settlement): void {
    if (!leased.end(one, settlement)) settling.add(one, settlement)
  }

  /** Hands back a delivery that is not attempted after all. If it is still pending, a claim reads it and its webhook. */
  async function putBack(one: HeldDelivery, request: Request): Promise<void> {
    scheduler.free(request)
    one.request = null
    await held.handBack([one])
  }

  async function send(delivery: DueDelivery): Promise<ExchangeOutcome> {
    const { webhook, eventId, body, mode, sample } = delivery
    const keys = keyring.keysOf(webhook, clock.now())
    const target = { eventId, body, mode, url: webhook.url, sample, ...keys, traced: tracedAttempt(delivery) }
    return attempt(options, target, breakOff.signal)
  }

  const held = startHeldDeliveries({
    ...options,
    scheduler,
    putBackLeased: (one) => leased.putBack(one),
    onOffered: pump,
    onError: report('keeping claims alive'),
  })

  function takeLeased(events: readonly LeasedEvent[]): void {
    held.holdLeased(events.flatMap((event) => leased.take(event)))
    // A transaction committed while the worker was stopping.
    if (isStopping) void held.handBackWaiting()
    else pump()
  }

  const settling = startDeliverySettler({
    ...options,
    intervalMs,
    onError: report('settling attempts'),
    onSettled: endOfAll,
  })

  function endOfAll(settled: readonly HeldDelivery[]): void {
    held.letGo(settled)
    for (const { request } of settled) if (request !== null) scheduler.free(request)
    pump()
  }

  const leased = startLeasedEvents({
    ...options,
    lease,
    intervalMs,
    onError: report('writing deliveries'),
    onSettled: endOfAll,
    onQueued: held.offerAgain,
    onLate(one, end) {
      if (end === 'queued') void held.handBack([one])
      else settling.add(one, end)
    },
    onReleased: options.wakeFanOut,
  })

  const claiming = startClaiming({
    ...options,
    scheduler,
    intervalMs,
    onError: report('claiming deliveries'),
    onClaimed(claim, request) {
      const one = held.hold(claim)
      if (one === null || isStopping) scheduler.free(request)
      else begin(one, request)
    },
    onInHand: held.holdInHand,
    onEnd: pump,
  })

  const flowScan = startFlowScan({
    queue,
    scheduler,
    intervalMs,
    onError: report('looking for deliveries'),
    onFound: pump,
  })

  const statistics = startStatistics({
    ...options,
    scheduler,
    process: lease,
    intervalMs: 5 * intervalMs,
    onError: report('writing statistics of flows and attempts'),
  })

  options.watchFlows?.(() => ({ places, ...statistics.census() }))

  const intakes = createIntakes({ scheduler, take: takeLeased })

  const silences = watchSilences({ scheduler, onNoted: pump })

  const handingBackOld = startLoop({
    intervalMs: Math.min(intervalMs, handAgeMs),
    onError: report('handing back deliveries'),
    async run() {
      scheduler.forgetIdle(performance.now() - forgetAfterMs)
      await held.handBackWaiting(handAgeMs)
      return false
    },
  })

  function report(doing: string): (error: unknown) => void {
    return (error) => logger.error({ err: error }, `${doing} failed; trying again`)
  }

  /** Takes over an event of a request. Returns false where the fan-out should take it. */
  function takeNow(event: LeasedEvent): boolean {
    if (event.deliveries.length === 0 && leased.withoutDeliveries() >= places) return false
    return intakes.takeNow(event)
  }

  async function stop(deadlineMs: number): Promise<void> {
    const deadline = performance.now() + deadlineMs
    isStopping = true
    intakes.close()
    await Promise.all([claiming.stop(), flowScan.stop(), handingBackOld.stop()])
    await held.handBackWaiting()
    await Promise.race([Promise.all(running), timeout(deadline - performance.now())])
    breakOff.abort()
    await Promise.all(running)
    silences.stop()
    await held.handBack(held.all().filter((one) => !settling.holds(one) && !leased.hasEnd(one)))
    // If the database does not accept all writes by then, claims and leases lapse, and the deliveries are made again.
    await leased.stop(deadline + 1_000)
    await settling.stop(deadline + 1_000)
    await statistics.stop(deadline + 1_000)
    await held.stop()
  }

  return {
    wake: flowScan.wake,
    offer(name, count) {
      scheduler.offer(name, count)
      pump()
    },
    intakes,
    lease,
    isOpen: leased.isOpen,
    leasing: {
      // The scheduler bounds what is taken over, in shares: a flood of one account keeps no other from a lease.
      lease: (accountId) => (intakes.isCaughtUp(accountId) ? lease : null),
      take(events) {
        leased.release(events.filter((event) => !takeNow(event)).map(({ id }) => id))
      },
      release: leased.release,
    },
    idleMs: () => Math.max(claiming.idleMs(), flowScan.idleMs(), settling.idleMs(), leased.idleMs(), held.idleMs()),
    stop(deadlineMs) {
      stopped ??= stop(deadlineMs)
      return stopped
    },
  }
}
