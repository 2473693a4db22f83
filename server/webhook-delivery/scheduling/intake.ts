import type { Mode } from '../../../contract/mode.ts'
import type { WebhookFlow } from '../load-deliveries.ts'
import type { LeasedEvent } from '../settlement/leased-event.ts'
import type { Admission, FlowName, Scheduler } from './scheduler-types.ts'

/** All events of a kind have the same receivers. */
export type EventKind = { accountId: string; mode: Mode; type: string }

/** Returns a kind as one text. */
export function keyOfKind({ accountId, mode, type }: EventKind): string {
  return `${accountId} ${mode} ${type}`
}

/** Maximum number of events of a kind that a batch of the fan-out should read. */
export type KindLimit = EventKind & { max: number }

/**
 * Where a batch of the fan-out reads. `front`: the first events of the outbox. `kinds`: the first events of each kind,
 * from the first kind behind this one on; null: from the first of all.
 */
export type Reading = { from: 'front' } | { from: 'kinds'; behind: EventKind | null }

/** How far a batch has looked. */
export type Looked =
  /** `isAll`: at all events of the outbox. */
  | { from: 'front'; isAll: boolean }
  /** `last`: the last kind it has looked at. Null: there are no others. `more`: accounts of kinds with more events. */
  | { from: 'kinds'; last: EventKind | null; more: readonly string[] }

/** Room in memory for one batch of the fan-out. Disposing it frees the room that was reserved and not filled. */
export type Reservation = Disposable & {
  readonly reading: Reading
  /** Of kinds that had events left for later. The fan-out reads at most `max` of such a kind: there is no room for more. */
  readonly limits: readonly KindLimit[]
  /**
   * Returns where the deliveries of an event should go. `hand`: all of them into memory, and room for them is reserved.
   * `later`: the event stays in the outbox. One of its flows is behind, and no other is slow or idle.
   */
  destinationOf(kind: EventKind, names: readonly FlowName[]): Admission
  /** Takes over the events that room was reserved for. Call it after their lease is committed. */
  fill(taken: Taken): void
}

export type Taken = {
  leased: readonly LeasedEvent[]
  looked: Looked
  /** True if some of the events that were looked at stay there. */
  rest: boolean
}

/** Takes events into memory, from the fan-out and from the requests of this process. */
export type Intakes = {
  /**
   * Begins a batch of the fan-out. If the last batch left events for later, it waits for room, at most about 100 ms.
   */
  open(): Promise<Reservation>
  /**
   * Returns true if an event of the account that is appended now is probably the account's next one. Otherwise the event
   * must go through the outbox: it is noted that the account has one there.
   */
  isCaughtUp(accountId: string): boolean
  /**
   * Takes over an event that was leased when it was appended. Returns false if not all of its deliveries should be in
   * memory.
   */
  takeNow(event: LeasedEvent): boolean
  /** Checks again whether there is room for the events that were left for later. */
  wake(): void
  /** Sends everything to the queue from now on. */
  close(): void
}

export type IntakesOptions = {
  scheduler: Pick<Scheduler, 'destinationOf' | 'mayTakeInHand' | 'expectInHand' | 'hasInHand' | 'view'>
  /** Starts the deliveries of these events. */
  take: (events: readonly LeasedEvent[]) => void
}

/**
 * A small batch costs as much as one of hundreds. So it waits until a flow has room for this many, or for as many as
 * are in memory already.
 */
const goodRoom = 250
/** The longest wait for room, and the pause before the fan-out looks at all kinds again. Milliseconds. */
const patienceMs = 100
/** Maximum number of kinds with a limit, and of their flows in all. */
const maxLimits = 1_000
const maxLeftFlows = 10_000
/** The room of more than a few flows is looked at no more often than this. Milliseconds. */
const fewFlows = 16
const lookMs = 5

export function createIntakes({ scheduler, take }: IntakesOptions): Intakes {
  /** The flows whose room the next batch waits for. */
  let awaited: readonly FlowName[] | null = null
  let endWait: (() => void) | null = null
  /** When the room of many flows was last looked at. Milliseconds, monotonic. */
  let lookedAt = Number.NEGATIVE_INFINITY
  let isClosed = false
  /** True once this process has looked at all kinds of the outbox. */
  let hasLookedAtAll = false
  /** True while more events wait than a batch at the front looks at. */
  let isLong = false
  /** The last kind that the round over all of them has come to. Null: there is none under way. */
  let round: EventKind | null = null
  /** The next batch by kind begins at this time at the earliest. Milliseconds, monotonic. */
  let lookAt = performance.now() + patienceMs
  /** Kinds of events that were left for later, each with the flows of its events, and the room of this batch for it. */
  const left = new Map<string, { kind: EventKind; names: readonly FlowName[]; room: number }>()
  /** Flows of all kinds in `left`. */
  let leftFlows = 0
  /** Accounts with events that stay in the outbox: those found in the look at all of it that is under way. */
  let behind = new Set<string>()
  /** Those found in the look before. */
  let behindBefore = new Set<string>()

  function leave(of: EventKind, all: readonly FlowName[]): void {
    const { accountId, mode, type } = of
    // Copies of a webhook share a flow.
    const names = [...new Map(all.map((name) => [name.flow, name])).values()]
    behind.add(accountId)
    forget(keyOfKind(of))
    // When full, the entries that it has are kept: a round looks at each kind only once.
    if (left.size === maxLimits || leftFlows + names.length > maxLeftFlows) return
    left.set(keyOfKind(of), { kind: { accountId, mode, type }, names, room: 0 })
    leftFlows += names.length
  }

  function forget(key: string): void {
    leftFlows -= left.get(key)?.names.length ?? 0
    left.delete(key)
  }

  /**
   * Returns where an event goes whose deliveries cannot all be in memory. It waits in the outbox only while one of its
   * flows is behind, and that keeps no other waiting that could go on: one that is slow, or that is idle and has room. So
   * a flow that is behind delays its own deliveries only.
   */
  function elsewhere(names: readonly FlowName[]): 'later' | 'queue' {
    let isBehind = false
    for (const name of names) {
      const destination = scheduler.destinationOf(name)
      if (destination === 'queue' || (destination === 'hand' && !scheduler.hasInHand(name.flow))) return 'queue'
      isBehind ||= destination === 'later'
    }
    // Each has room, but not for all deliveries of the event together: that would not change with time.
    return isBehind ? 'later' : 'queue'
  }

  /** Returns how many events with deliveries for these flows should be read. */
  function roomOf(names: readonly FlowName[]): number {
    if (isClosed) return Number.MAX_SAFE_INTEGER
    const room = Math.min(
      ...names.map((name) => (scheduler.destinationOf(name) === 'hand' ? scheduler.mayTakeInHand(name) : 0)),
    )
    return room === 0 && elsewhere(names) === 'queue' ? Number.MAX_SAFE_INTEGER : room
  }

  function hasGoodRoom(names: readonly FlowName[]): boolean {
    const inHand = Math.max(...names.map(({ flow }) => scheduler.view(flow)?.inHand ?? 0))
    const room = roomOf(names)
    return room > 0 && room >= Math.min(goodRoom, inHand)
  }

  async function roomComes(waitMs: number): Promise<void> {
    if (waitMs <= 0) return
    awaited = [...left.values()].findLast(({ names }) => !hasGoodRoom(names))?.names ?? null
    if (awaited === null) return
    const { promise, resolve } = Promise.withResolvers<void>()
    endWait = resolve
    const timer = setTimeout(resolve, waitMs)
    await promise
    clearTimeout(timer)
    awaited = null
    endWait = null
  }

  /** Reserves room in memory for all of them, or for none. Returns false where one should not be in memory. */
  function reserve(names: readonly FlowName[]): boolean {
    for (const [index, name] of names.entries()) {
      if (scheduler.destinationOf(name) !== 'hand') {
        for (const reserved of names.slice(0, index)) scheduler.expectInHand(reserved, -1)
        return false
      }
      scheduler.expectInHand(name, 1)
    }
    return true
  }

  /** Keeps the kinds for which all the room was used: more events of them may wait. */
  function forgetLeft(mayWait: boolean): void {
    for (const [key, { kind, room }] of left) {
      if (mayWait && room <= 0) behind.add(kind.accountId)
      else forget(key)
    }
  }

  /** Notes how far a batch has looked that began at this time. */
  function noteLooked(looked: Looked, rest: boolean, startedAt: number): void {
    const now = performance.now()
    if (looked.from === 'front') {
      isLong = !looked.isAll
      forgetLeft(rest || isLong)
      if (isLong) return
      lookAt = now + patienceMs
    } else {
      for (const { kind } of left.values()) behind.add(kind.accountId)
      for (const accountId of looked.more) behind.add(accountId)
      // So batches by kind take half of the time at most.
      lookAt = now + (now - startedAt)
      if (looked.last === null && looked.more.length === 0) lookAt = Math.max(lookAt, now + patienceMs)
      round = looked.last
      if (round !== null) return
    }
    round = null
    hasLookedAtAll = true
    behindBefore = behind
    behind = new Set()
  }

  return {
    async open() {
      await roomComes(Math.min(patienceMs, lookAt - performance.now()))
      const startedAt = performance.now()
      // However quickly the first events leave the outbox: no event waits behind those of other accounts or receivers.
      const looksByKind = (isLong || round !== null) && startedAt >= lookAt
      const reading: Reading = looksByKind ? { from: 'kinds', behind: round } : { from: 'front' }
      // For a batch that fails: the front has its turn before the next one.
      if (looksByKind) lookAt = startedAt + patienceMs
      for (const one of left.values()) one.room = roomOf(one.names)
      const limits = [...left.values()].map(({ kind, room }) => ({ ...kind, max: room }))
      let reserved: FlowName[] = []
      /** The kinds of event that this batch leaves in the outbox, from the first one that has no room on. */
      const leftNow = new Set<string>()

      function endReservations(): void {
        for (const name of reserved) scheduler.expectInHand(name, -1)
        reserved = []
      }

      return {
        reading,
        limits,
        destinationOf(kind, names) {
          if (isClosed) return 'queue'
          if (leftNow.has(keyOfKind(kind))) return 'later'
          if (reserve(names)) {
            reserved.push(...names)
            const limited = left.get(keyOfKind(kind))
            if (limited !== undefined) limited.room -= 1
            return 'hand'
          }
          const destination = elsewhere(names)
          if (destination === 'queue') return 'queue'
          leave(kind, names)
          leftNow.add(keyOfKind(kind))
          return 'later'
        },
        fill({ leased, looked, rest }) {
          noteLooked(looked, rest, startedAt)
          endReservations()
          take(leased)
        },
        [Symbol.dispose]: endReservations,
      }
    },
    isCaughtUp(accountId) {
      const isCaughtUp = hasLookedAtAll && !behind.has(accountId) && !behindBefore.has(accountId)
      // The event goes through the outbox, and the round under way may have passed its kind.
      if (!isCaughtUp && (!hasLookedAtAll || round !== null)) behind.add(accountId)
      return isCaughtUp && !isClosed
    },
    takeNow(event) {
      const names = event.deliveries.map((delivery) => flowName(delivery.accountId, delivery.webhook))
      const [first] = event.deliveries
      if (isClosed) return false
      if (!reserve(names)) {
        if (first !== undefined) leave({ ...first, type: event.type }, names)
        return false
      }
      for (const name of names) scheduler.expectInHand(name, -1)
      take([event])
      return true
    },
    wake() {
      if (awaited === null) return
      const now = performance.now()
      if (awaited.length > fewFlows && now < lookedAt + lookMs) return
      lookedAt = now
      if (hasGoodRoom(awaited)) endWait?.()
    },
    close() {
      isClosed = true
      endWait?.()
    },
  }
}

/** Returns the scheduler's name for the flow of a webhook. */
export function flowName(accountId: string, { flow, host }: WebhookFlow): FlowName {
  return { flow: String(flow), account: accountId, host }
}
