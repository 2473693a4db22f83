import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import type { Db } from '../database/connection.ts'
import { startLoop } from '../loop.ts'
import type { Queue } from '../queue/queue.ts'
import type { Tracer } from '../tracing/tracer.ts'
import { attempt } from './attempt.ts'
import { tracedAttempt } from './attempt-span.ts'
import { startClaiming } from './claiming.ts'
import { endOf } from './congestion.ts'
import type { Exchange, ExchangeOutcome } from './exchange.ts'
import { createHand, type Held } from './hand.ts'
import { handBack } from './hand-back.ts'
import { createIntakes, flowName, type Intakes } from './intake.ts'
import { createKeptBook } from './kept-book.ts'
import type { Keyring } from './keyring.ts'
import type { Claim, DueDelivery } from './load.ts'
import { createScheduler, defaultSettings } from './scheduling/scheduler.ts'
import type { FlowName, Request } from './scheduling/scheduler-types.ts'
import { startSettling } from './settling.ts'
import { watchSilences } from './silences.ts'
import { type Verdict, verdictOf } from './verdict.ts'
import { startWalk } from './walk.ts'
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
  /** Records the attempts of events that are traced. Default: none are recorded. */
  tracer?: Tracer
  /** Asked before each attempt. */
  webhookChanges: WebhookChanges
}

export type DeliveryWorker = {
  /** There may be due deliveries in the queue, of this flow or of whatever flow. */
  wake(flow?: number): void
  /** So many due deliveries were put into a flow. */
  offer(name: FlowName, count: number): void
  /** Has the fan-out of this process give deliveries in hand. */
  readonly intakes: Pick<Intakes, 'open'>
  /** Milliseconds since it last looked at the queue and settled without an error. */
  idleMs(): number
  /**
   * Claims no more, hands back what waits, and gives what is in flight until the deadline to end;
   * then breaks it off and hands it back too.
   */
  stop(deadlineMs: number): Promise<void>
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
  const hand = createHand()
  /** By the ids of the deliveries. */
  const held = new Map<string, Held>()
  const running = new Set<Promise<void>>()
  const kept = createKeptBook({ queue, intervalMs, onError: report('ending what is kept no more') })
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
      const one = request.from === 'hand' ? hand.take(request.flow) : undefined
      if (one === undefined) claiming.want(request, name)
      else begin(one, request)
      if (one !== undefined && scheduler.isToRefill(name)) claiming.refill(name)
    }
    intakes.wake()
    silences.watch()
  }

  function begin(one: Held, request: Request): void {
    one.request = request
    const attempting = attemptOne(one, request).finally(() => running.delete(attempting))
    running.add(attempting)
  }

  async function attemptOne(one: Held, request: Request): Promise<void> {
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
    scheduler.end(request, endOf(outcome))
    // Broken off by us: neither the endpoint's failure nor an attempt to be counted. It stays held.
    if (breakOff.signal.aborted && outcome.kind === 'failed') return
    const verdict = verdictOf(outcome, delivery.schedulePosition + 1)
    settling.add(one, { delivery, outcome, verdict })
    options.onAttempt?.(outcome, verdict)
    pump()
  }

  /** Hands back what is not attempted after all. Where its webhook is gone it is canceled when it is claimed. */
  async function putBack(one: Held, request: Request): Promise<void> {
    scheduler.free(request)
    await handBackHeld([one])
    scheduler.offer(flowName(one.delivery.accountId, one.delivery.webhook), 1)
    pump()
  }

  async function send(delivery: DueDelivery): Promise<ExchangeOutcome> {
    const { webhook, eventId, body, mode, sample } = delivery
    const keys = keyring.keysOf(webhook, clock.now())
    const target = { eventId, body, mode, url: webhook.url, sample, ...keys, traced: tracedAttempt(delivery) }
    return attempt(options, target, breakOff.signal)
  }

  /** Keeps the claim alive from now on. Null: the delivery is in hand here already. */
  function hold(claim: Claim): Held | null {
    const own = held.get(claim.delivery.id)
    // Its claim had lapsed, as when the database was away, but it is still in hand here: it goes on. What was
    // canceled while it was in flight and sent again is another run, and is attempted beside it.
    if (own !== undefined && own.delivery.run === claim.delivery.run) {
      kept.done([own])
      own.claimed = claim.claimed
      return null
    }
    const one = { ...claim, since: performance.now(), request: null }
    held.set(claim.delivery.id, one)
    return one
  }

  function letGo(ones: readonly Held[]): void {
    for (const one of ones) if (held.get(one.delivery.id) === one) held.delete(one.delivery.id)
  }

  function takeInHand(name: FlowName, claims: readonly Claim[]): void {
    const taken = claims.flatMap((claim) => hold(claim) ?? [])
    hand.add(name.flow, taken)
    scheduler.takeInHand(name, taken.length)
  }

  const settling = startSettling({
    ...options,
    intervalMs,
    onError: report('settling attempts'),
    onSettled(settled) {
      kept.done(settled)
      letGo(settled)
      for (const { request } of settled) if (request !== null) scheduler.free(request)
      pump()
    },
  })

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

  const walk = startWalk({ queue, scheduler, intervalMs, onError: report('looking for deliveries'), onFound: pump })

  const intakes = createIntakes({
    scheduler,
    take(claims) {
      kept.note(claims)
      for (const [, own] of Map.groupBy(claims, ({ delivery }) => delivery.webhook.flow)) {
        const first = own[0]?.delivery
        if (first !== undefined) takeInHand(flowName(first.accountId, first.webhook), own)
      }
      pump()
    },
    handBack(claims) {
      kept.note(claims)
      return handBack({ ...options, kept }, claims)
    },
  })

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
    const old = hand.takeOld(ms)
    if (old.length === 0) return
    for (const { delivery } of old) scheduler.takeInHand(flowName(delivery.accountId, delivery.webhook), -1)
    await handBackHeld(old)
    for (const { delivery } of old) scheduler.offer(flowName(delivery.accountId, delivery.webhook), 1)
    pump()
  }

  let keptAliveAt = performance.now()
  const keepingAlive = startLoop({
    intervalMs: keepAliveMs,
    onError: report('keeping claims alive'),
    async run() {
      // What was claimed since the last time needs nothing yet.
      const older = [...held.values()].filter(({ since }) => since < keptAliveAt).map(({ claimed }) => claimed)
      keptAliveAt = performance.now()
      await queue.keepAlive(older.filter((one) => 'claim' in one))
      await queue.kept.keepAlive([...new Set(older.flatMap((one) => ('keptBy' in one ? [one.keptBy] : [])))])
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
    // Where the database does not let all be settled by then, the claims lapse and the deliveries are made again.
    await settling.stop(deadline + 1_000)
    await keepingAlive.stop()
    await handBackHeld([...held.values()].filter((one) => !settling.holds(one)))
    await kept.stop(performance.now())
  }

  async function handBackHeld(ones: readonly Held[]): Promise<void> {
    letGo(ones)
    await handBack({ ...options, kept }, ones).catch((error) => {
      logger.error({ err: error }, 'deliveries could not be handed back; they are made when their claims have lapsed')
    })
  }

  return {
    wake: walk.wake,
    offer(name, count) {
      scheduler.offer(name, count)
      pump()
    },
    intakes,
    idleMs: () => Math.max(claiming.idleMs(), walk.idleMs(), settling.idleMs(), keepingAlive.idleMs()),
    stop(deadlineMs) {
      stopped ??= stop(deadlineMs)
      return stopped
    },
  }
}

/** What is told of an attempt that could not be made because of us; why stands in the log. */
const faultOfOurs = {
  kind: 'failed',
  durationMs: 0,
  stage: 'before-sending',
  reason: 'unreachable',
  message: 'The attempt could not be made because of a fault of the service. Ask its operator.',
  partialAnswer: null,
  reposted: false,
} as const

/** Does not keep the process alive by itself: what is waited for does. */
function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, ms)).unref()
  })
}
