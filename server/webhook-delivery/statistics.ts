import { startLoop } from '../lib/loop.ts'
import { createFlowStates, type FlowStatesOptions, type WaitingFor, waitingFor } from './flow-states.ts'
import type { FlowView, Scheduler } from './scheduling/scheduler-types.ts'
import type { Settlement } from './settlement/settlement.ts'
import { createWebhookOutcomes } from './settlement/webhook-outcomes.ts'

/** How many flows of this process there are, and what they hold. */
export type FlowCensus = {
  /** Places that are taken. */
  taken: number
  /** Flows with deliveries that wait, by what they wait for. */
  waiting: Record<WaitingFor, number>
  /** Flows whose endpoint answers nothing. */
  stalled: number
}

/** What this process tells all others of its flows and of what came of its attempts. */
export type Statistics = {
  /** Counts an attempt. */
  add(settlement: Settlement): void
  /** Looks at all flows now. */
  census(): FlowCensus
  /**
   * Writes what came of attempts once more, deletes the states of its flows, and ends. Ends at the deadline at the latest:
   * milliseconds, monotonic.
   */
  stop(deadline: number): Promise<void>
}

export type StatisticsOptions = FlowStatesOptions & {
  scheduler: Pick<Scheduler, 'held'>
  onError: (error: unknown) => void
}

/** Tells every `intervalMs`. What a process that is killed has not told is not counted. */
export function startStatistics(options: StatisticsOptions): Statistics {
  const { db, intervalMs, onError } = options
  const states = createFlowStates(options)
  const outcomes = createWebhookOutcomes(db)

  /** The outcomes first: they are gone with this process. */
  async function tellLast(): Promise<void> {
    await outcomes.write().catch(onError)
    await states.clear().catch(onError)
  }

  const loop = startLoop({
    intervalMs,
    onError,
    async run() {
      await outcomes.write()
      await states.write()
      return false
    },
  })

  return {
    add: outcomes.add,
    census: () => ({ taken: options.scheduler.held(), ...countFlows(options.scheduler.views()) }),
    async stop(deadline) {
      const { promise: isLate, resolve: giveUp } = Promise.withResolvers<void>()
      const timer = setTimeout(giveUp, Math.max(0, deadline - performance.now()))
      await Promise.race([loop.stop().then(tellLast), isLate])
      clearTimeout(timer)
    },
  }
}

function countFlows(views: Iterator<FlowView>): Omit<FlowCensus, 'taken'> {
  const census = { waiting: { endpoint_limit: 0, account_share: 0, claim: 0 }, stalled: 0 }
  for (let next = views.next(); next.done !== true; next = views.next()) {
    const { limit, waitsFor } = next.value
    if (waitsFor !== null) census.waiting[waitingFor[waitsFor]] += 1
    if (limit.phase === 'stalled') census.stalled += 1
  }
  return census
}
