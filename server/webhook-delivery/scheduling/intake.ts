import type { WebhookFlow } from '../load-deliveries.ts'
import type { LeasedEvent } from '../settlement/leased-event.ts'
import type { Admission, FlowName, Scheduler } from './scheduler-types.ts'

/** Room in memory for one batch of the fan-out. Disposing it frees the room that was reserved and not filled. */
export type Reservation = Disposable & {
  /** Maximum number of events to read. */
  readonly size: number
  /** Read only events with higher ids. */
  readonly after: string
  /**
   * Returns where the deliveries of an event should go. `hand`: all of them into memory, and room for them is reserved.
   */
  destinationOf(names: readonly FlowName[]): Admission
  /** Takes over the events that room was reserved for. Call it after their lease is committed. */
  fill(taken: Taken): void
}

export type Taken = {
  leased: readonly LeasedEvent[]
  /** The last event that was read. Null: the batch reached the end of the outbox. */
  last: string | null
}

/** Takes events into memory, from the fan-out and from the requests of this process. */
export type Intakes = {
  /**
   * Begins a batch of the fan-out. If the last batch left events for later, it waits for room, at most about 100 ms.
   */
  open(): Promise<Reservation>
  /** Returns true if an event of the account that is appended now is probably the account's next one. */
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
  scheduler: Pick<Scheduler, 'destinationOf' | 'mayTakeInHand' | 'expectInHand' | 'view'>
  /** Starts the deliveries of these events. */
  take: (events: readonly LeasedEvent[]) => void
}

/** Maximum number of events in a batch. A fan-out takes a few round trips, however many events it has. */
const batchSize = 1_000
/**
 * A small batch costs as much as one of hundreds. So it waits until a flow has room for this many, or for as many as
 * are in memory already.
 */
const goodRoom = 250
/** After this time the fan-out looks at events behind those left for later. Milliseconds. */
const patienceMs = 100
/** An account's events go through the outbox for this long after one of them was left for later. Milliseconds. */
const behindMs = 1_000

export function createIntakes({ scheduler, take }: IntakesOptions): Intakes {
  /** The flow of an event that the last batch left for later. */
  let awaited: FlowName | null = null
  let endWait: (() => void) | null = null
  let isClosed = false
  /** True once this process has seen the end of the outbox. */
  let hasSeenEnd = false
  /** Events up to this id, behind those left for later, were looked at. Empty: start from the beginning. */
  let passedTo = ''
  let passedAt = performance.now()
  /** When an event of an account was last left for later, by account. Milliseconds, monotonic. */
  const leftAt = new Map<string, number>()

  function leave(name: FlowName): void {
    awaited = name
    leftAt.set(name.account, performance.now())
  }

  /** Returns true if events of the awaited flow can be taken into memory. */
  function hasRoom(): boolean {
    if (isClosed || awaited === null) return true
    const inHand = scheduler.view(awaited.flow)?.inHand ?? 0
    const room = scheduler.mayTakeInHand(awaited)
    return scheduler.destinationOf(awaited) !== 'later' && room >= Math.min(goodRoom, inHand)
  }

  async function roomComes(waitMs: number): Promise<void> {
    if (hasRoom() || waitMs <= 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    endWait = resolve
    const timer = setTimeout(resolve, waitMs)
    await promise
    clearTimeout(timer)
    endWait = null
  }

  /** Returns how many events to read: more than fit would be read in vain. */
  function sizeFor(room: number): number {
    return Math.min(batchSize, Math.max(goodRoom, room))
  }

  /** Reserves room in memory for all of them, or for none. Returns the first flow that should not be in memory. */
  function reserve(names: readonly FlowName[]): FlowName | null {
    for (const [index, name] of names.entries()) {
      if (scheduler.destinationOf(name) !== 'hand') {
        for (const reserved of names.slice(0, index)) scheduler.expectInHand(reserved, -1)
        return name
      }
      scheduler.expectInHand(name, 1)
    }
    return null
  }

  function forgetLeft(): void {
    const before = performance.now() - behindMs
    for (const [account, at] of leftAt) if (at < before) leftAt.delete(account)
  }

  return {
    async open() {
      const isWaiting = awaited !== null
      if (isWaiting) await roomComes(passedAt + patienceMs - performance.now())
      // Look at events behind those left for later, however quickly their flow goes on.
      const passes = isWaiting && performance.now() >= passedAt + patienceMs
      const size = awaited === null || passes ? batchSize : sizeFor(scheduler.mayTakeInHand(awaited))
      if (!passes) awaited = null
      let reserved: FlowName[] = []

      function endReservations(): void {
        for (const name of reserved) scheduler.expectInHand(name, -1)
        reserved = []
      }

      return {
        size,
        after: passes ? passedTo : '',
        destinationOf(names) {
          if (isClosed) return 'queue'
          const other = reserve(names)
          if (other === null) {
            reserved.push(...names)
            return 'hand'
          }
          const destination = scheduler.destinationOf(other)
          if (destination === 'later') leave(other)
          return destination === 'hand' ? 'queue' : destination
        },
        fill({ leased, last }) {
          if (last === null) hasSeenEnd = true
          if (passes) {
            passedTo = last ?? ''
            passedAt = performance.now()
          }
          forgetLeft()
          endReservations()
          take(leased)
        },
        [Symbol.dispose]: endReservations,
      }
    },
    isCaughtUp: (accountId) => !isClosed && hasSeenEnd && !leftAt.has(accountId),
    takeNow(event) {
      const names = event.deliveries.map((delivery) => flowName(delivery.accountId, delivery.webhook))
      if (isClosed) return false
      const other = reserve(names)
      if (other !== null) {
        leave(other)
        return false
      }
      for (const name of names) scheduler.expectInHand(name, -1)
      take([event])
      return true
    },
    wake() {
      if (endWait !== null && hasRoom()) endWait()
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
