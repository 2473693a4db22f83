import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import type { Db } from '../database/connection.ts'
import { startLoop } from '../loop.ts'
import type { Queue } from '../queue/queue.ts'
import type { Turns } from '../queue/turns.ts'
import type { Tracer } from '../tracing/tracer.ts'
import { attempt } from './attempt.ts'
import { tracedAttempt } from './attempt-span.ts'
import { startClaiming } from './claiming.ts'
import type { Exchange, ExchangeOutcome } from './exchange.ts'
import { handBack, type PriorityOf } from './hand-back.ts'
import { createKeptBook } from './kept-book.ts'
import type { Keyring } from './keyring.ts'
import { createLane, createPlaces, type Held, type InFlight, type Lane, type Places } from './lane.ts'
import { setSlow } from './lane-change.ts'
import { createLaneMovers } from './lane-movers.ts'
import type { DueDelivery } from './load.ts'
import type { Room } from './room.ts'
import { startSettling } from './settling.ts'
import { createHealthBook, hangingMs, saturationMs } from './slow-lane.ts'
import { type Verdict, verdictOf } from './verdict.ts'
import type { WebhookChanges } from './webhook-changes.ts'
import { createWebhookReads } from './webhook-reads.ts'

const keepAliveMs = 5_000
/** A line that stands still for this long gives up its turns where others want the places. Milliseconds. */
const stuckMs = 100

export type DeliveryWorkerOptions = {
  db: Db
  queue: Queue
  exchange: Exchange
  keyring: Keyring
  clock: Clock
  logger: Logger
  /**
   * Requests in flight at most, over all lanes; at least 4. As many again may be waiting for endpoints
   * that have been silent for seconds.
   */
  concurrency: number
  /** Requests in flight to one webhook at most. */
  webhookConcurrency: number
  /** Milliseconds between polls when nothing wakes the worker. Default 1,000. */
  pollIntervalMs?: number
  /** Told of every attempt made. */
  onAttempt?: (outcome: ExchangeOutcome, verdict: Verdict) => void
  /** Records the attempts of events that are traced. Default: none are recorded. */
  tracer?: Tracer
  /** Told how far the fresh deliveries in the queue are. */
  turns: Turns
  /** Asked before each attempt. */
  webhookChanges: WebhookChanges
}

export type DeliveryWorker = {
  /** There may be fresh deliveries in the queue. */
  wake(): void
  /** Room for deliveries that are about to be fanned out: see `RoomOffers`. */
  offerRoom(waits: boolean): Promise<Room>
  /** Milliseconds since it last looked at the queue and settled without an error. */
  idleMs(): number
  /**
   * Claims no more, hands back what waits, and gives what is in flight until the deadline to end;
   * then breaks it off and hands it back too.
   */
  stop(deadlineMs: number): Promise<void>
}

/**
 * Delivers: claims deliveries, posts each as the caps allow, and settles them in batches. Fresh
 * deliveries, retries that fell due and the slow webhooks each have a share of the requests, so that
 * none of them can take the place of the others. Where fresh deliveries wait for one another, those whose
 * turn it is are still claimed, and a place that becomes free goes to the account that has the fewest.
 */
export function startDeliveryWorker(options: DeliveryWorkerOptions): DeliveryWorker {
  const { queue, keyring, clock, logger, concurrency, webhookConcurrency, webhookChanges } = options
  const intervalMs = options.pollIntervalMs ?? 1_000
  const share = Math.max(1, Math.floor(concurrency / 8))
  const slowCap = Math.max(1, Math.floor(share / 4))

  const inFlight: InFlight = new Map()
  const freshPlaces = createPlaces(Math.max(1, concurrency - 2 * share))
  const inTurn = laneOf(freshPlaces, webhookConcurrency)
  const fresh = laneOf(freshPlaces, webhookConcurrency)
  const retries = laneOf(createPlaces(share), webhookConcurrency)
  const slow = laneOf(createPlaces(share), slowCap)
  /** What hangs: it runs beside the others' shares, and nothing is begun here. */
  const hung = laneOf(createPlaces(0), 0)
  const lanes = [inTurn, fresh, retries, slow, hung]
  /** What a webhook leaves when it becomes slow. */
  const normal = [inTurn, fresh, retries]

  /** By the ids of the deliveries. */
  const held = new Map<string, Held>()
  const running = new Set<Promise<void>>()
  const health = createHealthBook()
  const kept = createKeptBook({ queue, intervalMs, onError: report('ending what is kept no more') })
  const breakOff = new AbortController()
  const webhooks = createWebhookReads({
    ...options,
    signal: breakOff.signal,
    intervalMs,
    onError: report('reading webhooks'),
  })
  const movers = createLaneMovers(options, report('moving deliveries to the slow lane'))
  let stopped: Promise<void> | undefined

  function laneOf(places: Places, webhookCap: number): Lane {
    return createLane({ places, webhookCap, inFlight, attempt: tracked, onEnd: pumpAll })
  }

  let freshFirst = false

  /**
   * What ends in one lane may be what another waits for: all of a webhook's requests share its cap. Of the two
   * that share places, the one whose account has the fewest is first; else they are by turns.
   */
  function pumpAll(): void {
    for (;;) {
      const [those, others] = [inTurn.fewest(), fresh.fewest()]
      if (those === null || others === null) break
      if (those === others) freshFirst = !freshFirst
      const first = those < others || (those === others && !freshFirst) ? inTurn : fresh
      first.startNext()
    }
    for (const lane of lanes) lane.pump()
  }

  function tracked(one: Held): Promise<void> {
    const attempting = attemptHeld(one).finally(() => running.delete(attempting))
    running.add(attempting)
    return attempting
  }

  async function attemptHeld(one: Held): Promise<void> {
    const { delivery } = one
    let isFresh = false
    // No `await` between this check and the start of the exchange, so that no change can be made known in between.
    while (!webhookChanges.mayBegin(delivery.webhookId, delivery.webhook, isFresh)) {
      const webhook = await webhooks.read(delivery.webhookId).catch(() => 'stopping' as const)
      if (webhook === 'stopping') return
      if (webhook === null) return putAway(one)
      delivery.webhook = webhook
      isFresh = true
    }
    one.begunAt = performance.now()
    const startedAt = clock.now()
    const outcome = await send(delivery).catch((error): ExchangeOutcome => {
      report('an attempt')(error)
      return { ...faultOfOurs, startedAt }
    })
    // Broken off by us: neither the endpoint's failure nor an attempt to be counted. It stays held.
    if (breakOff.signal.aborted && outcome.kind === 'failed') return
    const verdict = verdictOf(outcome, delivery.schedulePosition + 1)
    health.note(delivery.webhookId, {
      slow: delivery.webhook.slow,
      success: verdict.kind === 'succeeded',
      durationMs: outcome.durationMs,
    })
    settling.add(one, { delivery, outcome, verdict })
    options.onAttempt?.(outcome, verdict)
  }

  /**
   * Hands a delivery back whose webhook is disabled or gone, with all that waits for that here. Most have been
   * canceled with the change; the others are when they are claimed.
   */
  async function putAway(one: Held): Promise<void> {
    await handBackHeld([one, ...lanes.flatMap((lane) => lane.takeWaiting(one.delivery.webhookId))])
    claiming.wakeFor(new Set(lanes))
  }

  async function send(delivery: DueDelivery): Promise<ExchangeOutcome> {
    const { webhook, eventId, body, mode, sample } = delivery
    const keys = keyring.keysOf(webhook, clock.now())
    const target = { eventId, body, mode, url: webhook.url, sample, ...keys, traced: tracedAttempt(delivery) }
    return attempt(options, target, breakOff.signal)
  }

  function release(ones: Iterable<Held>): void {
    for (const one of ones) {
      if (held.get(one.delivery.id) === one) held.delete(one.delivery.id)
      one.lane.release()
    }
  }

  const settling = startSettling({
    ...options,
    intervalMs,
    onError: report('settling attempts'),
    onSettled(settled) {
      kept.done(settled)
      release(settled)
      claiming.wakeFor(new Set(settled.map(({ lane }) => lane)))
    },
  })

  const claiming = startClaiming({
    ...options,
    lanes: { fresh, inTurn, retries, slow },
    slowCap,
    held,
    kept,
    intervalMs,
    report,
  })

  const watching = startLoop({
    intervalMs: Math.min(intervalMs, stuckMs / 2),
    onError: report('watching the lanes'),
    async run() {
      const before = performance.now() - hangingMs
      // What waits for the database before it begins does not hang.
      const hanging = normal
        .flatMap((lane) => lane.hanging(hangingMs))
        .filter(({ begunAt = before }) => begunAt < before)
      for (const one of hanging.slice(0, Math.max(0, 2 * concurrency - running.size))) hung.takeOver(one)
      pumpAll()
      await yieldTurns()
      const saturated = normal.flatMap((lane) => lane.saturated(saturationMs))
      await makeSlow(new Set([...hanging.map(({ delivery }) => delivery.webhookId), ...saturated, ...health.failing()]))
      const recovered = health.recovered()
      for (const id of recovered) movers.stop(id)
      // What waits for them in the slow lane is still made from there.
      await setSlow(options, recovered, false)
      health.forget(recovered)
      return false
    },
  })

  /** Moves webhooks into the slow lane: what is here at once, and what waits in the queue little by little. */
  async function makeSlow(webhookIds: ReadonlySet<string>): Promise<void> {
    if (webhookIds.size === 0) return
    for (const { delivery } of held.values()) if (webhookIds.has(delivery.webhookId)) delivery.webhook.slow = true
    // Before there is room again: what is claimed then is known to be theirs.
    const changed = await setSlow(options, [...webhookIds], true)
    claiming.probeFresh()
    await handBackHeld([...webhookIds].flatMap((id) => normal.flatMap((lane) => lane.takeWaiting(id))))
    claiming.wakeFor(new Set(normal))
    for (const webhook of changed) movers.start(webhook)
    health.forget([...webhookIds])
    claiming.wakeSlow()
  }

  /** Has those whose turn it is too not wait for lines that stand still. */
  async function yieldTurns(): Promise<void> {
    if (inTurn.free() >= inTurn.places.total) return
    for (const id of inTurn.stuck(stuckMs)) {
      const line = inTurn.takeWaiting(id)
      const [first] = line
      if (first === undefined) continue
      await handBackHeld(line, options.turns.later(first.delivery.webhook, clock.now()))
      claiming.wakeFor(new Set([inTurn]))
    }
  }

  let keptAliveAt = performance.now()
  const keepingAlive = startLoop({
    intervalMs: keepAliveMs,
    onError: report('keeping claims alive'),
    async run() {
      // What was claimed since the last time needs nothing yet.
      const older = [...held.values()].filter((one) => one.since < keptAliveAt).map((one) => one.claimed)
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
    for (const lane of lanes) lane.halt()
    await Promise.all([claiming.stop(), watching.stop()])
    await movers.stopAll()
    await handBackHeld(lanes.flatMap((lane) => lane.takeWaiting()))
    await Promise.race([Promise.all(running), timeout(deadline - performance.now())])
    breakOff.abort()
    await Promise.all(running)
    // Where the database does not let all be settled by then, the claims lapse and the deliveries are made again.
    await settling.stop(deadline + 1_000)
    await keepingAlive.stop()
    await handBackHeld([...held.values()].filter((one) => !settling.holds(one)))
    await kept.stop(performance.now())
  }

  /** Lets go of them first: once they are back in the queue, another lane of this process may claim them. */
  async function handBackHeld(ones: readonly Held[], priorityOfOne?: PriorityOf): Promise<void> {
    release(ones)
    await handBack({ ...options, kept }, ones, priorityOfOne).catch((error) => {
      logger.error({ err: error }, 'deliveries could not be handed back; they are made when their claims have lapsed')
    })
  }

  return {
    wake: () => claiming.wakeFresh(),
    offerRoom: (waits) => claiming.offerRoom(waits),
    idleMs: () => Math.max(claiming.idleMs(), settling.idleMs(), keepingAlive.idleMs()),
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
