import { startLoop } from '../lib/polling-loop.ts'
import { createFlowStates, type FlowStatesOptions, type WaitingFor, waitingFor } from './flow-states.ts'
import type { FlowView, Scheduler } from './scheduling/scheduler-types.ts'
import type { Settlement } from './settlement/settlement-types.ts'
import { createWebhookOutcomes } from './settlement/webhook-outcome-counts.ts'

/** The number of flows and places in use in this process. */
export type FlowCensus = {
  /** Places that are taken. */
  taken: number
  /** Flows with waiting deliveries, by what they wait for. */
  waiting: Record<WaitingFor, number>
  /** Flows whose endpoints do not respond. */
  stalled: number
}

/** Publishes the states of flows and the results of attempts of this process. */
export type Statistics = {
  /** Counts an attempt. */
  add(settlement: Settlement): void
  /** Counts the flows at this moment. */
  census(): FlowCensus
  /**
   * Writes the results of attempts once more, deletes the states of its flows, and stops, at the deadline at the
   * latest. Milliseconds, monotonic.
   */
  stop(deadline: number): Promise<void>
}

export type StatisticsOptions = FlowStatesOptions & {
  scheduler: Pick<Scheduler, 'held'>
  onError: (error: unknown) => void
}

/** Starts writing every `intervalMs`. Results since the last write are lost if the process is killed. */
export function startStatistics(options: StatisticsOptions): Statistics {
  const { db, intervalMs, onError } = options
  const states = createFlowStates(options)
  const outcomes = createWebhookOutcomes(db)

  /** Writes the outcomes first: they exist only in this process. */
  async function writeLast(): Promise<void> {
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
      await Promise.race([loop.stop().then(writeLast), isLate])
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
