import { startLoop } from '../../lib/polling-loop.ts'
import { type FlowHead, firstFlow } from '../../queue/flow-jobs.ts'
import type { Queue } from '../../queue/queue.ts'
import type { FlowName, Scheduler } from './scheduler-types.ts'

/** Scans the flows of the queue for work that other processes have put there. */
export type FlowScan = {
  /** Starts the next scan step at once, and looks at this flow first. */
  wake(flow?: number): void
  /** Returns the milliseconds since the last step that ended without an error. */
  idleMs(): number
  stop(): Promise<void>
}

export type FlowScanOptions = {
  queue: Pick<Queue, 'flows'>
  scheduler: Pick<Scheduler, 'offer' | 'view'>
  /** Milliseconds between two steps. Each looks at up to 1,000 flows. */
  intervalMs: number
  onError: (error: unknown) => void
  /** Called at the end of each step. */
  onFound: () => void
}

/** Maximum number of flows that one statement looks at. */
const pageSize = 1_000

/**
 * Starts the scan. It finds a flow with work within `intervalMs` × (1 + flows / 1,000). It offers one delivery of the
 * flow to the scheduler: a claim that finds it asks for more.
 */
export function startFlowScan({ queue, scheduler, intervalMs, onError, onFound }: FlowScanOptions): FlowScan {
  /** The last flow looked at in this round. A wake-up does not start a new round, or rounds would never end. */
  let scannedTo = firstFlow - 1
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
      const heads = await queue.flows.heads(scannedTo, pageSize)
      offer(heads)
      scannedTo = heads.length < pageSize ? firstFlow - 1 : (heads.at(-1) as FlowHead).flow
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

/**
 * Returns the name of a flow. Account and host are unknown if its webhooks are deleted: its jobs are then removed by
 * the claim.
 */
function nameOf({ flow, accountId, host }: FlowHead): FlowName {
  return { flow: String(flow), account: accountId ?? '', host: host ?? '' }
}
