import type { WebhookFlow } from '../load-deliveries.ts'
import type { LeasedEvent } from '../settlement/leased-event.ts'
import type { Admission, FlowName, Scheduler } from './scheduler-types.ts'

/** What one fan-out may give this process in hand. What was reserved and not filled is free again when it is disposed of. */
export type Reservation = Disposable & {
  /** Events that are worth reading. */
  readonly size: number
  /** Only events with higher ids are to be read. */
  readonly after: string
  /** Where the deliveries of an event are best off. With `hand` they all are, and it is reserved for them. */
  destinationOf(names: readonly FlowName[]): Admission
  /** Takes over the events that were reserved for, once their lease is committed. */
  fill(taken: Taken): void
}

export type Taken = {
  leased: readonly LeasedEvent[]
  /** The last event that was read. Null: there is none after it. */
  last: string | null
}

/** Has events come into hand: from the fan-out of the same process, and from its own requests. */
export type Intakes = {
  /** For a batch of the fan-out. Where the last left events for later, it resolves when they may be in hand, or soon. */
  open(): Promise<Reservation>
  /** Whether an event of the account that is appended now is likely to be the next of it. */
  isCaughtUp(accountId: string): boolean
  /** Takes over an event that was leased when it was appended. False: its deliveries are not all best off in hand. */
  takeNow(event: LeasedEvent): boolean
  /** There may be room now. */
  wake(): void
  /** Everything goes into the queue from now on. */
  close(): void
}

export type IntakesOptions = {
  scheduler: Pick<Scheduler, 'destinationOf' | 'mayTakeInHand' | 'expectInHand' | 'view'>
  /** Has the deliveries of events made. */
  take: (events: readonly LeasedEvent[]) => void
}

/** Events in a batch at most: each fan-out waits for a few round trips, however many they are. */
const batchSize = 1_000
/** A batch of a handful costs as much as one of hundreds: a flow is waited for until it takes so many, or half of what it can. */
const goodRoom = 250
/** For so long events are left for later, until others behind them are looked at. Milliseconds. */
const patienceMs = 100
/** For so long after one of its events was left for later, an account's events go through the outbox. Milliseconds. */
const behindMs = 1_000

export function createIntakes({ scheduler, take }: IntakesOptions): Intakes {
  /** The last batch left an event of this flow for later. */
  let awaited: FlowName | null = null
  let endWait: (() => void) | null = null
  let isClosed = false
  /** Whether there was an end of the outbox since this process has started. */
  let hasSeenEnd = false
  /** Up to where events were looked at that stand behind those left for later. Empty: from the beginning. */
  let passedTo = ''
  let passedAt = performance.now()
  /** When an event of an account was last left for later. Milliseconds, monotonic. */
  const leftAt = new Map<string, number>()

  function leave(name: FlowName): void {
    awaited = name
    leftAt.set(name.account, performance.now())
  }

  /** Whether what was waited for can be in hand. */
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

  /** What is beyond the room of the one would be read in vain. */
  function sizeFor(room: number): number {
    return Math.min(batchSize, Math.max(goodRoom, room))
  }

  /** Reserves for all of them in hand, or for none. Returns the first that is not best off there. */
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
      // Others behind what is left for later have their turn, however quickly that goes on.
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

/** How the scheduler knows the flow of a webhook. */
export function flowName(accountId: string, { flow, host }: WebhookFlow): FlowName {
  return { flow: String(flow), account: accountId, host }
}
