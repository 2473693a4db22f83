import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import type { Db } from '../database/connection.ts'
import { type Loop, startLoop } from '../loop.ts'
import { type PriorityRange, rangeOfBursts, rangeOfDueRetries, rangeOfSlow, rangeOfTurns } from '../queue/lanes.ts'
import type { Queue } from '../queue/queue.ts'
import type { Tracer } from '../tracing/tracer.ts'
import { attempt } from './attempt.ts'
import { tracedAttempt } from './attempt-span.ts'
import { claimDue } from './claim.ts'
import type { Exchange, ExchangeOutcome } from './exchange.ts'
import { handBack } from './hand-back.ts'
import type { Keyring } from './keyring.ts'
import { createLane, type Held, type InFlight, type Lane, type Places } from './lane.ts'
import { setSlow } from './lane-change.ts'
import { createLaneMovers } from './lane-movers.ts'
import type { DueDelivery } from './load.ts'
import { settle } from './settle.ts'
import type { Settlement } from './settlement.ts'
import { createHealthBook, hangingMs, saturationMs } from './slow-lane.ts'
import { type Verdict, verdictOf } from './verdict.ts'

/** Jobs claimed by one statement at most, and attempts settled in one transaction. */
const batchSize = 500
/** Slow lanes looked at in one round. */
const slowLanesPerRound = 100
const keepAliveMs = 5_000
/** Attempts fewer than these wait a moment for more: a statement for a handful costs as much as one for hundreds. */
const fullBatch = 250
const gatheringMs = 5

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
  /** Told that no fresh delivery waits any more. */
  onCaughtUp?: () => void
}

export type DeliveryWorker = {
  /** There may be fresh deliveries. */
  wake(): void
  /** Milliseconds since it last looked at the queue and settled without an error. */
  idleMs(): number
  /**
   * Claims no more, hands back what waits, and gives what is in flight until the deadline to end;
   * then breaks it off and hands it back too.
   */
  stop(deadlineMs: number): Promise<void>
}

/** What claims for a lane; whether there was more than it took. */
type Claiming = { lane: Lane; loop: Loop; mayHaveMore: boolean }

/**
 * Delivers: claims deliveries, posts each as the caps allow, and settles them in batches. Fresh
 * deliveries, retries that fell due and the slow webhooks each have a share of the requests, so that
 * none of them can take the place of the others. Bursts have what fresh deliveries leave of theirs.
 */
export function startDeliveryWorker(options: DeliveryWorkerOptions): DeliveryWorker {
  const { queue, keyring, clock, logger, concurrency, webhookConcurrency } = options
  const intervalMs = options.pollIntervalMs ?? 1_000
  const share = Math.max(1, Math.floor(concurrency / 8))
  const slowCap = Math.max(1, Math.floor(share / 4))

  const inFlight: InFlight = new Map()
  const freshPlaces = placesFor(Math.max(1, concurrency - 2 * share))
  const fresh = laneOf(freshPlaces, webhookConcurrency)
  const bursts = laneOf(freshPlaces, webhookConcurrency)
  const retries = laneOf(placesFor(share), webhookConcurrency)
  const slow = laneOf(placesFor(share), slowCap)
  /** What hangs: it runs beside the others' shares, and nothing is begun here. */
  const hung = laneOf(placesFor(0), 0)
  /** In the order in which they may take a place that is free. */
  const lanes = [fresh, bursts, retries, slow, hung]
  /** What a webhook leaves when it becomes slow. */
  const normal = [fresh, bursts, retries]

  /** By the ids of the deliveries. */
  const held = new Map<string, Held>()
  const running = new Set<Promise<void>>()
  const unsettled: { held: Held; settlement: Settlement }[] = []
  const health = createHealthBook()
  const breakOff = new AbortController()
  const movers = createLaneMovers(options, report('moving deliveries to the slow lane'))
  let stopped: Promise<void> | undefined

  function placesFor(total: number): Places {
    return { total, taken: 0 }
  }

  function laneOf(places: Places, webhookCap: number): Lane {
    return createLane({ places, webhookCap, inFlight, attempt: tracked, onEnd: pumpAll })
  }

  /** What ends in one lane may be what another waits for: all of a webhook's requests share its cap. */
  function pumpAll(): void {
    for (const lane of lanes) lane.pump()
  }

  function tracked(one: Held): Promise<void> {
    const attempting = attemptHeld(one).finally(() => running.delete(attempting))
    running.add(attempting)
    return attempting
  }

  async function attemptHeld(one: Held): Promise<void> {
    const { delivery } = one
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
    unsettled.push({ held: one, settlement: { delivery, outcome, verdict } })
    options.onAttempt?.(outcome, verdict)
    settling.wake()
  }

  async function send(delivery: DueDelivery): Promise<ExchangeOutcome> {
    const { webhook, eventId, body } = delivery
    const keys = keyring.keysOf(webhook, clock.now())
    const target = { eventId, body, url: webhook.url, ...keys, traced: tracedAttempt(delivery) }
    return attempt(options, target, breakOff.signal)
  }

  /** Claims for a lane. Answers how many were claimed, and whether some of them belong there. */
  async function claimFor(lane: Lane, range: PriorityRange, limit: number): Promise<{ count: number; some: boolean }> {
    const { count, claims } = await claimDue(options, range, limit)
    const since = performance.now()
    const ready: Held[] = []
    const misplaced: DueDelivery[] = []
    for (const { delivery, claimed } of claims) {
      const own = held.get(delivery.id)
      // Its claim had lapsed, as when the database was away, but it is still in hand here: it goes on.
      if (own !== undefined) own.claimed = claimed
      else if (delivery.webhook.slow && lane !== slow) misplaced.push(delivery)
      else ready.push({ delivery, claimed, lane, since })
    }
    for (const one of ready) held.set(one.delivery.id, one)
    lane.add(ready)
    if (misplaced.length > 0) {
      await handBack(options, misplaced)
      claimingSlow.wake()
    }
    return { count, some: ready.length > 0 }
  }

  function release(ones: Iterable<Held>): void {
    for (const one of ones) {
      held.delete(one.delivery.id)
      one.lane.release()
    }
  }

  const settling = startLoop({
    intervalMs,
    onError: report('settling attempts'),
    async run() {
      if (unsettled.length === 0) return false
      if (unsettled.length < fullBatch) await timeout(gatheringMs)
      const batch = unsettled.slice(0, batchSize)
      await settle(
        options,
        batch.map(({ settlement }) => settlement),
      )
      unsettled.splice(0, batch.length)
      release(batch.map((entry) => entry.held))
      for (const { lane, mayHaveMore, loop } of claimings) {
        if (mayHaveMore && batch.some((entry) => entry.held.lane === lane)) loop.wake()
      }
      if (batch.some((entry) => entry.held.lane === slow)) claimingSlow.wake()
      return unsettled.length > 0
    },
  })

  /** The loop that claims what is in a range for a lane. */
  function claimInto(lane: Lane, kind: string, rangeNow: () => PriorityRange | Promise<PriorityRange>): Claiming {
    const claiming: Claiming = {
      lane,
      mayHaveMore: true,
      loop: startLoop({
        intervalMs,
        onError: report(`claiming ${kind}`),
        async run() {
          const limit = Math.min(lane.free(), batchSize)
          // A claim of a handful costs as much as one of hundreds: wait for room.
          if (limit < lane.places.total) return false
          const { count, some } = await claimFor(lane, await rangeNow(), limit)
          claiming.mayHaveMore = count === limit
          if (lane === bursts && count < limit) options.onCaughtUp?.()
          return claiming.mayHaveMore && some
        },
      }),
    }
    return claiming
  }

  const claimings = [
    claimInto(fresh, 'fresh deliveries', () => rangeOfTurns(clock.now())),
    claimInto(bursts, 'bursts', () => rangeOfBursts(clock.now())),
    claimInto(retries, 'retries', async () => rangeOfDueRetries(await queue.now())),
  ]

  let lastSlowLane = 0
  const claimingSlow = startLoop({
    intervalMs,
    onError: report('claiming for slow webhooks'),
    async run() {
      const lanes = await queue.slowLanes(lastSlowLane, slowLanesPerRound)
      const heldByLane = Map.groupBy(
        [...held.values()].filter((one) => one.lane === slow),
        (one) => one.delivery.webhook.lane,
      )
      for (const lane of lanes) {
        const limit = Math.min(slow.free(), slowCap - (heldByLane.get(lane)?.length ?? 0))
        if (slow.free() === 0) return false
        lastSlowLane = lane
        if (limit > 0) await claimFor(slow, rangeOfSlow(lane), limit)
      }
      // The round is complete: the next one begins with the first lane.
      if (lanes.length < slowLanesPerRound) lastSlowLane = 0
      return false
    },
  })

  const claimingLoops = [...claimings.map(({ loop }) => loop), claimingSlow]

  const watching = startLoop({
    intervalMs: Math.min(intervalMs, saturationMs / 4),
    onError: report('watching the lanes'),
    async run() {
      const hanging = normal.flatMap((lane) => lane.hanging(hangingMs))
      for (const one of hanging.slice(0, Math.max(0, 2 * concurrency - running.size))) hung.takeOver(one)
      pumpAll()
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
    await handBackHeld([...webhookIds].flatMap((id) => normal.flatMap((lane) => lane.takeWaiting(id))))
    for (const { loop } of claimings) loop.wake()
    for (const webhook of await setSlow(options, [...webhookIds], true)) movers.start(webhook)
    health.forget([...webhookIds])
    claimingSlow.wake()
  }

  let keptAliveAt = performance.now()
  const keepingAlive = startLoop({
    intervalMs: keepAliveMs,
    onError: report('keeping claims alive'),
    async run() {
      // What was claimed since the last time needs nothing yet.
      const older = [...held.values()].filter((one) => one.since < keptAliveAt).map((one) => one.claimed)
      keptAliveAt = performance.now()
      await queue.keepAlive(older)
      return false
    },
  })

  function report(doing: string): (error: unknown) => void {
    return (error) => logger.error({ err: error }, `${doing} failed; trying again`)
  }

  async function stop(deadlineMs: number): Promise<void> {
    const deadline = performance.now() + deadlineMs
    for (const lane of lanes) lane.halt()
    movers.stop()
    await Promise.all([...claimingLoops, watching].map((loop) => loop.stop()))
    await handBackHeld(lanes.flatMap((lane) => lane.takeWaiting()))
    await Promise.race([Promise.all(running), timeout(deadline - performance.now())])
    breakOff.abort()
    await Promise.all(running)
    // Ends when all is settled, or when the database does not let it before the deadline: then the
    // claims lapse, and the deliveries are made again.
    while (unsettled.length > 0 && performance.now() < deadline + 1_000) {
      settling.wake()
      await timeout(20)
    }
    await settling.stop()
    await keepingAlive.stop()
    await handBackHeld([...held.values()].filter((one) => !unsettled.some((entry) => entry.held === one)))
  }

  /** Lets go of them first: once they are back in the queue, another lane of this process may claim them. */
  async function handBackHeld(ones: readonly Held[]): Promise<void> {
    release(ones)
    const deliveries = ones.map(({ delivery }) => delivery)
    await handBack(options, deliveries).catch((error) => {
      logger.error({ err: error }, 'deliveries could not be handed back; they are made when their claims have lapsed')
    })
  }

  return {
    wake() {
      for (const { loop, lane } of claimings) if (lane !== retries) loop.wake()
    },
    idleMs: () => Math.max(...[...claimingLoops, settling, keepingAlive].map((loop) => loop.idleMs())),
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
} as const

/** Does not keep the process alive by itself: what is waited for does. */
function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, ms)).unref()
  })
}
