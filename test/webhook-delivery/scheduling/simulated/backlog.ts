import { createDeadlines, type Deadlines } from '../../../../server/webhook-delivery/scheduling/deadline-heap.ts'

export type Webhook = { id: string; account: string; url: string; version: number }

export type Delivery = {
  id: number
  webhook: Webhook
  state: 'queued' | 'claimed' | 'in_flight' | 'succeeded' | 'failed' | 'canceled'
  queuedAt: number
  /** When each attempt began. */
  begunAt: number[]
}

/** The simulated queue of PostgreSQL: the deliveries that wait, by flow and in the order in which they are due. */
export type Backlog = {
  put(flow: string, delivery: Delivery, dueAt: number): void
  /** Takes up to `limit` of a flow that are due. */
  claim(flow: string, limit: number, now: number): Delivery[]
  /** Flows in which something is due: up to `limit`, from a place in their order, and the place to go on at. */
  walk(from: number, limit: number, now: number): { flows: string[]; next: number }
  /** All that wait. */
  size(): number
}

export function createBacklog(): Backlog {
  const flows = new Map<string, Deadlines<Delivery>>()
  const names: string[] = []

  return {
    put(flow, delivery, dueAt) {
      if (delivery.state === 'queued') throw new Error(`delivery ${delivery.id} is in the queue already`)
      delivery.state = 'queued'
      let waiting = flows.get(flow)
      if (waiting === undefined) {
        waiting = createDeadlines()
        flows.set(flow, waiting)
        names.push(flow)
      }
      waiting.add(delivery, dueAt)
    },
    claim(flow, limit, now) {
      const claimed: Delivery[] = []
      while (claimed.length < limit) {
        const delivery = flows.get(flow)?.takeDue(now)
        if (delivery === undefined) break
        if (delivery.state !== 'queued') throw new Error(`delivery ${delivery.id} was claimed twice`)
        delivery.state = 'claimed'
        claimed.push(delivery)
      }
      return claimed
    },
    walk(from, limit, now) {
      const page = names.slice(from, from + limit)
      const due = page.filter((name) => (flows.get(name)?.earliest() ?? Number.POSITIVE_INFINITY) <= now)
      return { flows: due, next: page.length < limit ? 0 : from + limit }
    },
    size: () => [...flows.values()].reduce((sum, waiting) => sum + waiting.size, 0),
  }
}
