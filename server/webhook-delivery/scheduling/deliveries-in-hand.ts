import type { ClaimedDelivery } from '../../queue/queue.ts'
import type { DueDelivery } from '../load-deliveries.ts'
import type { Request } from './scheduler-types.ts'

/** A delivery that this process holds until it is settled or handed back. */
export type HeldDelivery = {
  delivery: DueDelivery
  /** Null: the delivery is not in the database yet, and its event is leased. */
  claimed: ClaimedDelivery | null
  /** When this process took the delivery. Milliseconds, monotonic. */
  since: number
  /** When the claim, or the lease of the event, was last known to be this process's. Milliseconds, monotonic. */
  aliveAt: number
  /** Null: no attempt has begun. */
  request: Request | null
}

/** Deliveries in hand: they wait in memory for their attempt, in FIFO order for each flow. */
export type DeliveriesInHand = {
  add(flow: string, held: readonly HeldDelivery[]): void
  /** Removes and returns the first delivery of a flow. Undefined: there is none. */
  take(flow: string): HeldDelivery | undefined
  /** Removes and returns all deliveries held for longer than `ms`. Default: all. */
  takeOld(ms?: number): HeldDelivery[]
}

export function createDeliveriesInHand(): DeliveriesInHand {
  /** By flow. Waiting deliveries begin at index `next`. */
  const queues = new Map<string, { waiting: HeldDelivery[]; next: number }>()

  return {
    add(flow, held) {
      if (held.length === 0) return
      const queue = queues.get(flow) ?? { waiting: [], next: 0 }
      queues.set(flow, queue)
      queue.waiting.push(...held)
    },
    take(flow) {
      const queue = queues.get(flow)
      const first = queue?.waiting[queue.next]
      if (queue === undefined || first === undefined) return undefined
      queue.next += 1
      if (queue.next === queue.waiting.length) queues.delete(flow)
      return first
    },
    takeOld(ms = Number.NEGATIVE_INFINITY) {
      const before = performance.now() - ms
      return [...queues].flatMap(([flow, { waiting, next }]) => {
        // The oldest come first.
        const young = waiting.findIndex(({ since }, index) => index >= next && since >= before)
        const end = young === -1 ? waiting.length : young
        if (end === waiting.length) queues.delete(flow)
        else queues.set(flow, { waiting: waiting.slice(end), next: 0 })
        return waiting.slice(next, end)
      })
    },
  }
}
