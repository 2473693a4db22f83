import type { ClaimedDelivery } from '../../queue/queue.ts'
import type { DueDelivery } from '../load-deliveries.ts'
import type { Request } from './scheduler-types.ts'

/** A delivery that this process has, until it is settled or handed back. */
export type HeldDelivery = {
  delivery: DueDelivery
  /** Null: it is not written down yet, and its event is leased. */
  claimed: ClaimedDelivery | null
  /** Milliseconds, monotonic. */
  since: number
  /** Null: it is not attempted yet. */
  request: Request | null
}

/** What this process has and has not begun, by flow. */
export type DeliveriesInHand = {
  add(flow: string, held: readonly HeldDelivery[]): void
  /** Takes out the first of a flow. Undefined: there is none. */
  take(flow: string): HeldDelivery | undefined
  /** Takes out all that has been here for longer than `ms`; by default everything. */
  takeOld(ms?: number): HeldDelivery[]
}

export function createDeliveriesInHand(): DeliveriesInHand {
  /** Those of a flow that wait begin at `next`. */
  const lines = new Map<string, { waiting: HeldDelivery[]; next: number }>()

  return {
    add(flow, held) {
      if (held.length === 0) return
      const line = lines.get(flow) ?? { waiting: [], next: 0 }
      lines.set(flow, line)
      line.waiting.push(...held)
    },
    take(flow) {
      const line = lines.get(flow)
      const first = line?.waiting[line.next]
      if (line === undefined || first === undefined) return undefined
      line.next += 1
      if (line.next === line.waiting.length) lines.delete(flow)
      return first
    },
    takeOld(ms = Number.NEGATIVE_INFINITY) {
      const before = performance.now() - ms
      return [...lines].flatMap(([flow, { waiting, next }]) => {
        // The oldest are first.
        const young = waiting.findIndex(({ since }, index) => index >= next && since >= before)
        const end = young === -1 ? waiting.length : young
        if (end === waiting.length) lines.delete(flow)
        else lines.set(flow, { waiting: waiting.slice(end), next: 0 })
        return waiting.slice(next, end)
      })
    },
  }
}
