import { startLoop } from '../../lib/loop.ts'
import { type FlowHead, firstFlow } from '../../queue/flow-jobs.ts'
import type { Queue } from '../../queue/queue.ts'
import type { FlowName, Scheduler } from './scheduler-types.ts'

/** Looks through the flows of the queue, and so finds work that other processes have put there. */
export type FlowScan = {
  /** Has it go on at once, and look at this flow first. */
  wake(flow?: number): void
  /** Milliseconds since it last looked without an error. */
  idleMs(): number
  stop(): Promise<void>
}

export type FlowScanOptions = {
  queue: Pick<Queue, 'flows'>
  scheduler: Pick<Scheduler, 'offer' | 'view'>
  /** Milliseconds between two looks. Each looks at up to 1,000 flows. */
  intervalMs: number
  onError: (error: unknown) => void
  /** Told when a look has ended. */
  onFound: () => void
}

/** Flows looked at by one statement. */
const pageSize = 1_000

/**
 * A flow with work is found within `intervalMs` and one more for each 1,000 flows. It is offered one delivery: a claim
 * that finds it asks for more.
 */
export function startFlowScan({ queue, scheduler, intervalMs, onError, onFound }: FlowScanOptions): FlowScan {
  /** The last flow that was looked at in this round. Nobody who wakes it begins another: it would come to no end. */
  let walkedTo = firstFlow - 1
  const asked = new Set<number>()

  function offer(heads: readonly FlowHead[]): void {
    for (const head of heads) {
      const name = nameOf(head)
      if (head.isDue && (scheduler.view(name.flow)?.waiting ?? 0) <= 0) scheduler.offer(name, 1)
    }
  }

  const loop = startLoop({
    intervalMs,
    onError,
    async run() {
      for (const flow of asked) {
        offer(await queue.flows.heads(flow - 1, 1))
        asked.delete(flow)
      }
      const heads = await queue.flows.heads(walkedTo, pageSize)
      offer(heads)
      walkedTo = heads.length < pageSize ? firstFlow - 1 : (heads.at(-1) as FlowHead).flow
      onFound()
      return false
    },
  })

  return {
    wake(flow) {
      if (flow !== undefined) asked.add(flow)
      loop.wake()
    },
    idleMs: loop.idleMs,
    stop: loop.stop,
  }
}

/** A flow of which nothing is known is of webhooks that are gone: what waits in it is put away. */
function nameOf({ flow, accountId, host }: FlowHead): FlowName {
  return { flow: String(flow), account: accountId ?? '', host: host ?? '' }
}
