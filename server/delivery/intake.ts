import type { Claim, WebhookFlow } from './load.ts'
import type { Destination, FlowName, Scheduler } from './scheduling/scheduler-types.ts'

/** What one fan-out may give this process in hand. What was reserved and not filled is free again when it is disposed of. */
export type Intake = Disposable & {
  /** Events that are worth reading. */
  readonly size: number
  /** Where a delivery is best off. Never `later` when that was waited for in vain. */
  destinationOf(name: FlowName): Destination
  /** Reserves what `destinationOf` called `hand`. */
  reserve(name: FlowName): void
  /** Takes over the deliveries that were reserved for, once that is committed. */
  fill(claims: readonly Claim[]): Promise<void>
}

/** Has the fan-out of the same process give deliveries in hand. */
export type Intakes = {
  /** With `waits` it answers when what was called `later` may be in hand, and at the latest after a tenth of a second. */
  open(waits: boolean): Promise<Intake>
  /** There may be room now. */
  wake(): void
  /** Everything goes into the queue from now on. What fills an intake is handed back. */
  close(): void
}

export type IntakesOptions = {
  scheduler: Pick<Scheduler, 'destinationOf' | 'mayTakeInHand' | 'expectInHand' | 'view'>
  /** Has deliveries made. */
  take: (claims: readonly Claim[]) => void
  handBack: (claims: readonly Claim[]) => Promise<void>
}

/** Events in a batch at most: each fan-out waits for a few round trips, however many they are. */
const batchSize = 1_000
/** A batch of a handful costs as much as one of hundreds: a flow is waited for until it takes so many, or half of what it can. */
const goodRoom = 250
/** Milliseconds. It is also what has so many events leave the outbox whatever stands in the way: a batch in each. */
const patienceMs = 100

export function createIntakes({ scheduler, take, handBack }: IntakesOptions): Intakes {
  /** The flow that the last batch ended at, because it was for later. */
  let awaited: FlowName | null = null
  let endWait: (() => void) | null = null
  let isClosed = false

  /** Whether what was waited for can be in hand. */
  function hasRoom(): boolean {
    if (isClosed || awaited === null) return true
    const inHand = scheduler.view(awaited.flow)?.inHand ?? 0
    const room = scheduler.mayTakeInHand(awaited)
    return scheduler.destinationOf(awaited) !== 'later' && room >= Math.min(goodRoom, inHand)
  }

  async function roomComes(): Promise<void> {
    if (hasRoom()) return
    const { promise, resolve } = Promise.withResolvers<void>()
    endWait = resolve
    const timer = setTimeout(resolve, patienceMs)
    await promise
    clearTimeout(timer)
    endWait = null
  }

  /** What is beyond the room of the one would be read in vain. */
  function sizeFor(room: number): number {
    return Math.min(batchSize, Math.max(goodRoom, room))
  }

  return {
    async open(waits) {
      if (waits) await roomComes()
      const mayBeLater = !waits || hasRoom()
      const size = awaited === null || !mayBeLater ? batchSize : sizeFor(scheduler.mayTakeInHand(awaited))
      awaited = null
      const reserved = new Map<string, { name: FlowName; count: number }>()

      function endReservations(): void {
        for (const { name, count } of reserved.values()) scheduler.expectInHand(name, -count)
        reserved.clear()
      }

      return {
        size,
        destinationOf(name) {
          if (isClosed) return 'queue'
          const destination = scheduler.destinationOf(name)
          if (destination !== 'later') return destination
          if (!mayBeLater) return 'queue'
          awaited = name
          return 'later'
        },
        reserve(name) {
          const own = reserved.get(name.flow) ?? { name, count: 0 }
          own.count += 1
          reserved.set(name.flow, own)
          scheduler.expectInHand(name, 1)
        },
        async fill(claims) {
          endReservations()
          if (isClosed) await handBack(claims)
          else take(claims)
        },
        [Symbol.dispose]: endReservations,
      }
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
