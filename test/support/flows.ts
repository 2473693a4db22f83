import type { Intake } from '../../server/delivery/intake.ts'
import { type FlowClaim, firstFlow, type Wanted } from '../../server/queue/flow-jobs.ts'
import type { Queue } from '../../server/queue/queue.ts'

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

/** An intake for so many deliveries, which puts the others into the queue. */
export function intakeFor(size: number): Pick<Intake, 'size' | 'destinationOf' | 'reserve'> {
  let left = size
  return {
    size: 1_000,
    destinationOf: () => (left > 0 ? 'hand' : 'queue'),
    reserve: () => void left--,
  }
}
