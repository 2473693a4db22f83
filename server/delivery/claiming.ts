import type { Clock } from '../clock.ts'
import type { Db } from '../database/connection.ts'
import { type Loop, startLoop } from '../loop.ts'
import { freshRange, type PriorityRange, rangeOfDueRetries, rangeOfSlow, rangeOfTurns } from '../queue/lanes.ts'
import type { Queue } from '../queue/queue.ts'
import type { Turns } from '../queue/turns.ts'
import { type Claim, claimDue } from './claim.ts'
import { handBack } from './hand-back.ts'
import type { KeptBook } from './kept-book.ts'
import type { Held, Lane } from './lane.ts'
import { createRoomOffers, type Room } from './room.ts'

/** Jobs claimed by one statement at most. */
const batchSize = 500
/** Deliveries that are fanned out and kept at once at most: each fan-out waits for a few round trips, however many they are. */
const roomSize = 1_000
/** Jobs claimed to see whether what waits is still of slow webhooks. */
const probeSize = 20
/** Slow lanes looked at in one round. */
const slowLanesPerRound = 100

/** Claims deliveries for the lanes as there is room in them. */
export type Claiming = {
  /** There may be fresh deliveries. */
  wakeFresh(): void
  /** Much of what is fresh may be of webhooks that have just become slow: claims a few, to see. */
  probeFresh(): void
  /** There may be deliveries for slow webhooks. */
  wakeSlow(): void
  /** There is room again in these lanes. */
  wakeFor(lanes: ReadonlySet<Lane>): void
  /** Room for what is fanned out here: none while deliveries wait in the queue that go first. See `RoomOffers`. */
  offerRoom(waits: boolean): Promise<Room>
  /** Milliseconds since each last looked at the queue without an error. */
  idleMs(): number
  stop(): Promise<void>
}

export type ClaimingOptions = {
  db: Db
  queue: Queue
  clock: Clock
  lanes: {
    fresh: Lane
    /** For fresh deliveries whose turn it is, while there is no room in `fresh`. */
    inTurn: Lane
    retries: Lane
    slow: Lane
  }
  /** What is held for one slow webhook at most. */
  slowCap: number
  /** All that is held, by the ids of the deliveries; what is claimed is added. */
  held: Map<string, Held>
  /** Of those, and of what is handed back at once, those that are kept with others. */
  kept: KeptBook
  /** Milliseconds between polls when nothing wakes it. */
  intervalMs: number
  /** Makes what is told of an error, by what was done. */
  report: (doing: string) => (error: unknown) => void
  /** Told how far the fresh deliveries in the queue are. */
  turns: Turns
}

/** What claims for a lane; whether there may be more than it took. */
type LaneClaiming = { lane: Lane; loop: Loop; mayHaveMore: boolean }

/** Where a lane has its deliveries from, and whether it may claim at this moment. */
type LaneSource = {
  kind: string
  rangeNow: () => PriorityRange | Promise<PriorityRange>
  mayClaim: () => boolean
}

export function startClaiming(options: ClaimingOptions): Claiming {
  const { queue, clock, turns, lanes, slowCap, held, kept, intervalMs, report } = options
  const { fresh, retries, slow } = lanes

  /** Claims for a lane. Answers how many were claimed. */
  async function claimFor(lane: Lane, range: PriorityRange, limit: number): Promise<number> {
    const { count, claims } = await claimDue(options, range, limit)
    const misplaced = place(lane, claims)
    if (lane === fresh) noteFresh({ count, limit, misplaced: misplaced.length })
    if (lane === lanes.inTurn) noteTurns(count < limit)
    await handBackMisplaced(misplaced)
    if (lane === fresh && freshWaits) await noteTurnsReached()
    return count
  }

  /** Answers those that are for the slow lane and not for this one. */
  function place(lane: Lane, claims: readonly Claim[]): Claim[] {
    const since = performance.now()
    const ready: Held[] = []
    const misplaced: Claim[] = []
    for (const claim of claims) {
      const { delivery, claimed } = claim
      const own = held.get(delivery.id)
      // Its claim had lapsed, as when the database was away, but it is still in hand here: it goes on. What was
      // canceled while it was in flight and sent again is another run, and is attempted beside it.
      if (own !== undefined && own.delivery.run === delivery.run) {
        kept.done([own])
        own.claimed = claimed
      } else if (delivery.webhook.slow && lane !== slow) misplaced.push(claim)
      else ready.push({ delivery, claimed, lane, since })
    }
    for (const one of ready) held.set(one.delivery.id, one)
    lane.add(ready)
    return misplaced
  }

  async function handBackMisplaced(misplaced: readonly Claim[]): Promise<void> {
    if (misplaced.length === 0) return
    await handBack(options, misplaced)
    claimingSlow.wake()
  }

  /**
   * Until when only those are claimed whose turn it is, and then a few to see whose they are. Milliseconds,
   * monotonic. Null: the last fresh ones were not of slow webhooks.
   */
  let freshRestsUntil: number | null = null

  /** Whether fresh deliveries may wait in the queue. */
  let freshWaits = true

  /** Whether deliveries may wait in the queue whose turn it is. */
  let turnsWait = true

  function noteTurns(caughtUp: boolean): void {
    turnsWait = !caughtUp
  }

  async function noteTurnsReached(): Promise<void> {
    const second = await queue.nextTurns()
    if (second !== null) turns.reach(second, clock.now())
  }

  function noteFresh({ count, limit, misplaced }: { count: number; limit: number; misplaced: number }): void {
    freshWaits = count === limit
    if (!freshWaits) {
      turns.forget()
      room.wake()
    }
    // Most are of slow webhooks, whose deliveries are being moved: that costs less than claiming them.
    freshRestsUntil = misplaced > limit / 2 ? performance.now() + intervalMs : null
    if (freshRestsUntil !== null) claimingTurns.loop.wake()
  }

  /** Whether the lane takes what is fresh, so that nobody needs to have turns. */
  function freshHasRoom(): boolean {
    return hasRoom(fresh) && performance.now() >= (freshRestsUntil ?? 0)
  }

  /** A claim of a handful costs as much as one of hundreds: it waits for room. */
  function hasRoom(lane: Lane): boolean {
    return lane.free() >= lane.places.total
  }

  /** Claims what is in a range for a lane. */
  function claimInto(lane: Lane, { kind, rangeNow, mayClaim }: LaneSource): LaneClaiming {
    const claiming: LaneClaiming = {
      lane,
      mayHaveMore: true,
      loop: startLoop({
        intervalMs,
        onError: report(`claiming ${kind}`),
        async run() {
          if (!mayClaim()) {
            claiming.mayHaveMore = true
            return false
          }
          const isProbe = lane === fresh && freshRestsUntil !== null
          const limit = Math.min(lane.free(), isProbe ? probeSize : batchSize)
          const count = await claimFor(lane, await rangeNow(), limit)
          claiming.mayHaveMore = count === limit
          if (lane === fresh && !freshHasRoom()) claimingTurns.loop.wake()
          return claiming.mayHaveMore
        },
      }),
    }
    return claiming
  }

  const claimingTurns = claimInto(lanes.inTurn, {
    kind: 'fresh deliveries whose turn it is',
    async rangeNow() {
      await noteTurnsReached()
      return rangeOfTurns(turns.come())
    },
    mayClaim: () => !freshHasRoom() && hasRoom(lanes.inTurn),
  })
  const claimingFresh = claimInto(fresh, {
    kind: 'fresh deliveries',
    rangeNow: () => freshRange,
    mayClaim: freshHasRoom,
  })
  const claimingRetries = claimInto(retries, {
    kind: 'retries',
    rangeNow: async () => rangeOfDueRetries(await queue.now()),
    mayClaim: () => hasRoom(retries),
  })
  const byLane = [claimingTurns, claimingFresh, claimingRetries]

  let lastSlowLane = 0
  const claimingSlow = startLoop({
    intervalMs,
    onError: report('claiming for slow webhooks'),
    async run() {
      const numbers = await queue.slowLanes(lastSlowLane, slowLanesPerRound)
      const heldByLane = Map.groupBy(
        [...held.values()].filter((one) => one.lane === slow),
        (one) => one.delivery.webhook.lane,
      )
      for (const number of numbers) {
        const limit = Math.min(slow.free(), slowCap - (heldByLane.get(number)?.length ?? 0))
        if (slow.free() === 0) return false
        lastSlowLane = number
        if (limit > 0) await claimFor(slow, rangeOfSlow(number), limit)
      }
      // The round is complete: the next one begins with the first lane.
      if (numbers.length < slowLanesPerRound) lastSlowLane = 0
      return false
    },
  })

  const room = createRoomOffers({
    laneNow() {
      if (!freshWaits) return { lane: fresh, onlyTurns: false }
      return turnsWait || turns.come() === null ? null : { lane: lanes.inTurn, onlyTurns: true }
    },
    batchSize: roomSize,
    make(lane, claims) {
      kept.note(claims)
      return handBackMisplaced(place(lane, claims))
    },
    handBack(claims) {
      kept.note(claims)
      return handBack(options, claims)
    },
  })

  async function offerRoom(waits: boolean): Promise<Room> {
    // What is fanned out now is not to have turns of the clock, behind all that waits with those of before.
    if (freshWaits && turns.come() === null) await noteTurnsReached()
    return room.offer(waits)
  }

  const loops = [...byLane.map(({ loop }) => loop), claimingSlow]
  return {
    wakeFresh() {
      freshWaits = true
      turnsWait = true
      claimingFresh.loop.wake()
      claimingTurns.loop.wake()
    },
    probeFresh() {
      freshRestsUntil ??= performance.now()
    },
    wakeSlow: () => claimingSlow.wake(),
    wakeFor(freed) {
      room.wake()
      for (const { lane, loop, mayHaveMore } of byLane) if (mayHaveMore && freed.has(lane)) loop.wake()
      if (freed.has(slow)) claimingSlow.wake()
    },
    offerRoom,
    idleMs: () => Math.max(...loops.map((loop) => loop.idleMs())),
    async stop() {
      room.close()
      await Promise.all(loops.map((loop) => loop.stop()))
    },
  }
}
