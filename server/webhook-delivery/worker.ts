import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { createEventLoopLoad } from '../lib/event-loop-load.ts'
import { startLoop } from '../lib/loop.ts'
import type { Tracer } from '../observability/tracing/tracer.ts'
import type { Queue } from '../queue/queue.ts'
import { attempt, faultOfOurs } from './attempt/attempt.ts'
import { tracedAttempt } from './attempt/attempt-span.ts'
import type { Exchange, ExchangeOutcome } from './attempt/exchange.ts'
import type { Keyring } from './attempt/keyring.ts'
import { type Verdict, verdictOf } from './attempt/verdict.ts'
import type { Claim, DueDelivery } from './load-deliveries.ts'
import { startClaiming } from './scheduling/claim-loop.ts'
import { signalOf } from './scheduling/congestion-signal.ts'
import { createDeliveriesInHand, type HeldDelivery } from './scheduling/deliveries-in-hand.ts'
import { startFlowScan } from './scheduling/flow-scan.ts'
import { handBack } from './scheduling/hand-back.ts'
import { createIntakes, flowName, type Intakes } from './scheduling/intake.ts'
import { createScheduler, defaultSettings } from './scheduling/scheduler.ts'
import type { FlowName, Request } from './scheduling/scheduler-types.ts'
import { watchSilences } from './scheduling/silences.ts'
import { startDeliverySettler } from './settlement/delivery-settler.ts'
import type { LeasedEvent } from './settlement/leased-event.ts'
import { startLeasedEvents } from './settlement/leased-events.ts'
import type { Settlement } from './settlement/settlement.ts'
import { type FlowCensus, startStatistics } from './statistics.ts'
import type { WebhookChanges } from './webhook-changes.ts'
import { createWebhookReads } from './webhook-reads.ts'

const keepAliveMs = 5_000
/** What is in hand for longer is handed back. Milliseconds. */
const handAgeMs = 1_000
/** Flows that had nothing to do for as long are forgotten. Milliseconds. */
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
  /** Requests in flight to one URL of an account at most. */
  endpointMax: number
  /** Milliseconds between polls when nothing wakes the worker. Default 1,000. */
  pollIntervalMs?: number
  /** Told of every attempt made. */
  onAttempt?: (outcome: ExchangeOutcome, verdict: Verdict) => void
  /** Told how long each delivery that is claimed had waited in the queue since it was due. Seconds. */
  onWaited?: (seconds: number) => void
  /** Given a function that counts what the worker has at the moment it is called. */
  watchFlows?: (census: () => DeliveryCensus) => void
  /** Records the attempts of events that are traced. Default: none are recorded. */
  tracer?: Tracer
  /** Asked before each attempt. */
  webhookChanges: WebhookChanges
  /** Told when events that were leased wait in the outbox after all. */
  wakeFanOut: () => void
}

export type DeliveryCensus = FlowCensus & { places: number }

export type DeliveryWorker = {
  /** There may be due deliveries in the queue, of this flow or of whatever flow. */
  wake(flow?: number): void
  /** So many due deliveries were put into a flow. */
  offer(name: FlowName, count: number): void
  /** Has the fan-out of this process give events in hand. */
  readonly intakes: Pick<Intakes, 'open'>
  /** What names this process in the outbox. */
  readonly lease: string
  /** Whether an event is leased to this process and in its hand. */
  isOpen(eventId: string): boolean
  /** Has its requests give events in hand as they are appended. */
  readonly leasing: Leasing
  /** Milliseconds since it last looked at the queue and settled without an error. */
  idleMs(): number
  /**
   * Claims no more, hands back what waits, and gives what is in flight until the deadline to end;
   * then breaks it off and hands it back too.
   */
  stop(deadlineMs: number): Promise<void>
}

/** Has events leased as they are appended, where their deliveries are likely to begin at once. */
export type Leasing = {
  /** What to lease the next event of an account to. Null: it is left to the fan-out. */
  lease(accountId: string): string | null
  /** Takes over events that were so leased and are committed; what is better made otherwise goes to the fan-out. */
  take(events: readonly LeasedEvent[]): void
  /** Leaves events that were so leased to the fan-out. */
  release(eventIds: readonly string[]): void
}

/**
 * Delivers: the scheduler says which flow starts a request next; what is not in hand is claimed for it. Each delivery
 * is posted, and attempts are settled in batches. See docs/delivery-engine.md.
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
  const inHand = createDeliveriesInHand()
  const isBusy = createEventLoopLoad()
  /** By the ids of the deliveries. */
  const held = new Map<string, HeldDelivery>()
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

  /** Starts what may start: what is in hand at once, the rest when it is claimed. */
  function pump(): void {
    if (isStopping) return
    for (let request = scheduler.next(); request !== null; request = scheduler.next()) {
      const name = scheduler.nameOf(request)
      const one = request.from === 'hand' ? inHand.take(request.flow) : undefined
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
    // No `await` between this check and the start of the exchange, so that no change can be made known in between.
    while (!webhookChanges.mayBegin(delivery.webhookId, delivery.webhook, isFresh)) {
      const webhook = await webhooks.read(delivery.webhookId).catch(() => 'stopping' as const)
      if (webhook === 'stopping') return
      if (webhook !== null) delivery.webhook = webhook
      // It is gone or disabled, or its deliveries wait in another flow now.
      if (webhook === null || String(webhook.flow) !== request.flow) return putBack(one, request)
      isFresh = true
    }
    scheduler.begin(request, performance.now())
    const startedAt = clock.now()
    const outcome = await send(delivery).catch((error): ExchangeOutcome => {
      report('an attempt')(error)
      return { ...faultOfOurs, startedAt }
    })
    scheduler.end(request, signalOf(outcome, isBusy()))
    // Broken off by us: neither the endpoint's failure nor an attempt to be counted. It stays held.
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

  /** Hands back what is not attempted after all. Where its webhook is gone or disabled it is canceled then. */
  async function putBack(one: HeldDelivery, request: Request): Promise<void> {
    scheduler.free(request)
    one.request = null
    await handBackHeld([one])
  }

  async function send(delivery: DueDelivery): Promise<ExchangeOutcome> {
    const { webhook, eventId, body, mode, sample } = delivery
    const keys = keyring.keysOf(webhook, clock.now())
    const target = { eventId, body, mode, url: webhook.url, sample, ...keys, traced: tracedAttempt(delivery) }
    return attempt(options, target, breakOff.signal)
  }

  /** Keeps the claim alive from now on. Null: the delivery is in hand here already. */
  function hold(claim: Claim): HeldDelivery | null {
    const own = held.get(claim.delivery.id)
    // Its claim had lapsed, as when the database was away, but it is still in hand here: it goes on. What was
    // canceled while it was in flight and sent again is another run, and is attempted beside it.
    if (own !== undefined && own.delivery.run === claim.delivery.run) {
      own.claimed = claim.claimed
      return null
    }
    const one = { ...claim, since: performance.now(), request: null }
    held.set(claim.delivery.id, one)
    return one
  }

  function letGo(ones: readonly HeldDelivery[]): void {
    for (const one of ones) if (held.get(one.delivery.id) === one) held.delete(one.delivery.id)
  }

  function takeInHand(name: FlowName, claims: readonly Claim[]): void {
    putInHand(
      name,
      claims.flatMap((claim) => hold(claim) ?? []),
    )
  }

  function putInHand(name: FlowName, ones: readonly HeldDelivery[]): void {
    inHand.add(name.flow, ones)
    scheduler.takeInHand(name, ones.length)
  }

  function takeLeased(events: readonly LeasedEvent[]): void {
    const taken = events.flatMap((event) => leased.take(event))
    for (const one of taken) held.set(one.delivery.id, one)
    for (const own of Map.groupBy(taken, ({ delivery }) => delivery.webhook.flow).values()) {
      const [first] = own
      if (first !== undefined) putInHand(flowName(first.delivery.accountId, first.delivery.webhook), own)
    }
    // What was on its way as the worker was told to stop.
    if (isStopping) void handBackWaiting()
    else pump()
  }

  const settling = startDeliverySettler({
    ...options,
    intervalMs,
    onError: report('settling attempts'),
    onSettled: endOfAll,
  })

  function endOfAll(settled: readonly HeldDelivery[]): void {
    letGo(settled)
    for (const { request } of settled) if (request !== null) scheduler.free(request)
    pump()
  }

  const leased = startLeasedEvents({
    ...options,
    lease,
    intervalMs,
    onError: report('writing deliveries down'),
    onSettled: endOfAll,
    onQueued: offerAgain,
    onLate(one, end) {
      if (end === 'queued') void handBackHeld([one])
      else settling.add(one, end)
    },
    onReleased: options.wakeFanOut,
  })

  /** They wait in the queue now. */
  function offerAgain(ones: readonly HeldDelivery[]): void {
    letGo(ones)
    for (const { delivery } of ones) scheduler.offer(flowName(delivery.accountId, delivery.webhook), 1)
    pump()
  }

  const claiming = startClaiming({
    ...options,
    scheduler,
    intervalMs,
    onError: report('claiming deliveries'),
    onClaimed(claim, request) {
      const one = hold(claim)
      if (one === null || isStopping) scheduler.free(request)
      else begin(one, request)
    },
    onInHand: takeInHand,
    onEnd: pump,
  })

  const walk = startFlowScan({ queue, scheduler, intervalMs, onError: report('looking for deliveries'), onFound: pump })

  const statistics = startStatistics({
    ...options,
    scheduler,
    process: lease,
    intervalMs: 5 * intervalMs,
    onError: report('telling of flows and attempts'),
  })

  options.watchFlows?.(() => ({ places, ...statistics.census() }))

  const intakes = createIntakes({ scheduler, take: takeLeased })

  const silences = watchSilences({ scheduler, onNoted: pump })

  const tidying = startLoop({
    intervalMs: Math.min(intervalMs, handAgeMs),
    onError: report('handing back what has waited'),
    async run() {
      scheduler.forgetIdle(performance.now() - forgetAfterMs)
      await handBackWaiting(handAgeMs)
      return false
    },
  })

  /** Hands back what has waited in hand for longer than `ms`; by default all that waits. */
  async function handBackWaiting(ms?: number): Promise<void> {
    const old = inHand.takeOld(ms)
    if (old.length === 0) return
    for (const { delivery } of old) scheduler.takeInHand(flowName(delivery.accountId, delivery.webhook), -1)
    await handBackHeld(old)
  }

  let keptAliveAt = performance.now()
  const keepingAlive = startLoop({
    intervalMs: keepAliveMs,
    onError: report('keeping claims alive'),
    async run() {
      // What was claimed since the last time needs nothing yet.
      const older = [...held.values()].filter(({ since }) => since < keptAliveAt)
      keptAliveAt = performance.now()
      await queue.keepAlive(older.flatMap(({ claimed }) => claimed ?? []))
      return false
    },
  })

  function report(doing: string): (error: unknown) => void {
    return (error) => logger.error({ err: error }, `${doing} failed; trying again`)
  }

  async function stop(deadlineMs: number): Promise<void> {
    const deadline = performance.now() + deadlineMs
    isStopping = true
    intakes.close()
    await Promise.all([claiming.stop(), walk.stop(), tidying.stop()])
    await handBackWaiting()
    await Promise.race([Promise.all(running), timeout(deadline - performance.now())])
    breakOff.abort()
    await Promise.all(running)
    silences.stop()
    await handBackHeld([...held.values()].filter((one) => !settling.holds(one) && !leased.hasEnd(one)))
    // Where the database does not let all be written by then, claims and leases lapse and the deliveries are made again.
    await leased.stop(deadline + 1_000)
    await settling.stop(deadline + 1_000)
    await statistics.stop(deadline + 1_000)
    await keepingAlive.stop()
  }

  async function handBackHeld(ones: readonly HeldDelivery[]): Promise<void> {
    const written = ones.filter((one) => !leased.putBack(one))
    letGo(written)
    const claims = written.flatMap(({ delivery, claimed }) => (claimed === null ? [] : [{ delivery, claimed }]))
    await handBack(options, claims).catch((error) => {
      logger.error({ err: error }, 'deliveries could not be handed back; they are made when their claims have lapsed')
    })
    offerAgain(written)
  }

  return {
    wake: walk.wake,
    offer(name, count) {
      scheduler.offer(name, count)
      pump()
    },
    intakes,
    lease,
    isOpen: leased.isOpen,
    leasing: {
      lease: (accountId) => (intakes.isCaughtUp(accountId) && leased.size() < 2 * places ? lease : null),
      take(events) {
        leased.release(events.filter((event) => !intakes.takeNow(event)).map(({ id }) => id))
      },
      release: leased.release,
    },
    idleMs: () => Math.max(claiming.idleMs(), walk.idleMs(), settling.idleMs(), leased.idleMs(), keepingAlive.idleMs()),
    stop(deadlineMs) {
      stopped ??= stop(deadlineMs)
      return stopped
    },
  }
}

/** Does not keep the process alive by itself: what is waited for does. */
function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, ms)).unref()
  })
}
