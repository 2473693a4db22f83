import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import { startLoop } from '../lib/polling-loop.ts'
import type { Queue } from '../queue/queue.ts'
import type { Claim } from './load-deliveries.ts'
import { createDeliveriesInHand, type HeldDelivery } from './scheduling/deliveries-in-hand.ts'
import { handBack } from './scheduling/hand-back.ts'
import { flowName } from './scheduling/intake.ts'
import type { FlowName, Scheduler } from './scheduling/scheduler-types.ts'

/*
 * The deliveries that this process holds, each from its claim or the lease of its event:
 *
 *   held ──▶ in hand, waits ──▶ attempted ──▶ settled: let go
 *                  └───────────────┴──▶ handed back: waits in the queue again, for any process
 */

const keepAliveMs = 5_000

export type HeldDeliveries = {
  /** Holds a claimed delivery and keeps its claim alive. Returns null if this process holds the delivery already. */
  hold(claim: Claim): HeldDelivery | null
  /** Holds claimed deliveries of one flow, except those that this process holds already, and lets them wait in hand. */
  holdInHand(name: FlowName, claims: readonly Claim[]): void
  /** Holds deliveries of leased events, and lets them wait in hand. */
  holdLeased(taken: readonly HeldDelivery[]): void
  /** Removes the next delivery of a flow from those in hand, and returns it. It stays held. */
  takeFromHand(flow: string): HeldDelivery | undefined
  /** Stops holding deliveries that are settled. */
  letGo(ones: readonly HeldDelivery[]): void
  /** Stops holding deliveries that wait in the queue now, and offers them to the scheduler again. */
  offerAgain(ones: readonly HeldDelivery[]): void
  /** Puts deliveries that are not attempted back into the queue. Never rejects: their claims lapse otherwise. */
  handBack(ones: readonly HeldDelivery[]): Promise<void>
  /** Hands back the deliveries that have waited in hand for longer than `ms`. Default: all that wait there. */
  handBackWaiting(ms?: number): Promise<void>
  /** Returns all held deliveries: those in hand, in flight and being settled. */
  all(): HeldDelivery[]
  /** Returns the milliseconds since claims were last kept alive without an error. */
  idleMs(): number
  /** Stops keeping claims alive. */
  stop(): Promise<void>
}

export type HeldDeliveriesOptions = {
  db: Db
  queue: Queue
  logger: Logger
  scheduler: Pick<Scheduler, 'offer' | 'takeInHand'>
  /** Puts the delivery of a leased event back: as `putBack` of `LeasedEvents`. */
  putBackLeased: (one: HeldDelivery) => boolean
  /** Called when deliveries were offered again. */
  onOffered: () => void
  onError: (error: unknown) => void
}

/** Starts with no deliveries. Keeps the claims of all that it holds alive. */
export function startHeldDeliveries(options: HeldDeliveriesOptions): HeldDeliveries {
  const { queue, logger, scheduler, putBackLeased, onOffered, onError } = options
  /** By delivery id. */
  const held = new Map<string, HeldDelivery>()
  const inHand = createDeliveriesInHand()

  function hold(claim: Claim): HeldDelivery | null {
    const own = held.get(claim.delivery.id)
    // The claim had lapsed, for example while the database was unreachable, but this process still holds the delivery
    // and goes on with it. A delivery that was canceled in flight and then sent again is another run, attempted beside
    // the first.
    if (own !== undefined && own.delivery.run === claim.delivery.run) {
      own.claimed = claim.claimed
      own.aliveAt = performance.now()
      return null
    }
    const now = performance.now()
    const one = { ...claim, since: now, aliveAt: now, request: null }
    held.set(claim.delivery.id, one)
    return one
  }

  function putInHand(name: FlowName, ones: readonly HeldDelivery[]): void {
    inHand.add(name.flow, ones)
    scheduler.takeInHand(name, ones.length)
  }

  function letGo(ones: readonly HeldDelivery[]): void {
    for (const one of ones) if (held.get(one.delivery.id) === one) held.delete(one.delivery.id)
  }

  function offerAgain(ones: readonly HeldDelivery[]): void {
    letGo(ones)
    for (const { delivery } of ones) scheduler.offer(flowName(delivery.accountId, delivery.webhook), 1)
    onOffered()
  }

  async function handBackHeld(ones: readonly HeldDelivery[]): Promise<void> {
    // Before they can be claimed: the claim of a delivery that is still held is given to the one that holds it.
    letGo(ones)
    const written = ones.filter((one) => !putBackLeased(one))
    const claims = written.flatMap(({ delivery, claimed }) => (claimed === null ? [] : [{ delivery, claimed }]))
    await handBack(options, claims).catch((error) => {
      logger.error({ err: error }, 'cannot hand deliveries back; they are claimed again when their claims have lapsed')
    })
    offerAgain(written)
  }

  let keptAliveAt = performance.now()
  const keepingAlive = startLoop({
    intervalMs: keepAliveMs,
    onError,
    async run() {
      // Claims made since the last run are still fresh.
      const older = [...held.values()].filter(({ since }) => since < keptAliveAt)
      const now = performance.now()
      keptAliveAt = now
      const alive = await queue.keepAlive(older.flatMap(({ claimed }) => claimed ?? []))
      for (const one of older) if (alive.has(one.delivery.id)) one.aliveAt = now
      return false
    },
  })

  return {
    hold,
    holdInHand(name, claims) {
      putInHand(
        name,
        claims.flatMap((claim) => hold(claim) ?? []),
      )
    },
    holdLeased(taken) {
      for (const one of taken) held.set(one.delivery.id, one)
      for (const own of Map.groupBy(taken, ({ delivery }) => delivery.webhook.flow).values()) {
        const [first] = own
        if (first !== undefined) putInHand(flowName(first.delivery.accountId, first.delivery.webhook), own)
      }
    },
    takeFromHand: inHand.take,
    letGo,
    offerAgain,
    handBack: handBackHeld,
    async handBackWaiting(ms) {
      const old = inHand.takeOld(ms)
      if (old.length === 0) return
      for (const { delivery } of old) scheduler.takeInHand(flowName(delivery.accountId, delivery.webhook), -1)
      await handBackHeld(old)
    },
    all: () => [...held.values()],
    idleMs: keepingAlive.idleMs,
    stop: keepingAlive.stop,
  }
}
