import { randomUUID } from 'node:crypto'
import type { FanOutMeans } from '../../server/fan-out/fan-out.ts'
import { type FlowClaim, firstFlow, type Wanted } from '../../server/queue/flow-jobs.ts'
import type { Queue } from '../../server/queue/queue.ts'
import type { FinishedEvent } from '../../server/webhook-delivery/settlement/finish-events.ts'
import type { LeasedEvent } from '../../server/webhook-delivery/settlement/leased-event.ts'

/** A flow of no webhook. */
export const someFlow = firstFlow + 7

/** The flows in which anything is due, and as much of each as is to be claimed. */
export async function dueFlows({ flows }: Pick<Queue, 'flows'>, count: number): Promise<Wanted[]> {
  const heads = await flows.heads(0, 1_000)
  return heads.filter(({ isDue }) => isDue).map(({ flow }) => ({ flow, count }))
}

/** Claims what is due, so much of each flow. */
export async function claimFlows(queue: Pick<Queue, 'flows'>, count: number): Promise<FlowClaim[]> {
  const wanted = await dueFlows(queue, count)
  return wanted.length === 0 ? [] : queue.flows.claim(wanted)
}

/** Has up to so many deliveries taken in hand, and the others put into the queue. */
export function takingFor(size: number): NonNullable<FanOutMeans['taking']> {
  let left = size
  return {
    lease: randomUUID(),
    isOpen: () => false,
    intake: {
      reading: { from: 'front' },
      limits: [],
      destinationOf(_kind, names) {
        if (names.length > left) return 'queue'
        left -= names.length
        return 'hand'
      },
    },
  }
}

/** An event to be written with deliveries that wait in the queue. */
export function asQueued(event: LeasedEvent): FinishedEvent {
  return { event, deliveries: event.deliveries.map((delivery) => ({ delivery, end: 'queued' })) }
}
