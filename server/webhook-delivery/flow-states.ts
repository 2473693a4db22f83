import { sql } from 'kysely'
import { plainArray } from '../database/arrays.ts'
import type { Db } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { FlowStatesTable } from '../database/tables/webhooks.ts'
import { queueNow } from '../queue/queue.ts'
import type { FlowView, Scheduler, WaitReason } from './scheduling/scheduler-types.ts'

/** Publishes what the flows of this process wait for, so that all processes can show it. */
export type FlowStates = {
  /** Writes one page of flows. */
  write(): Promise<void>
  /** Deletes the rows of this process. Call it when the process ends. */
  clear(): Promise<void>
}

export type FlowStatesOptions = {
  db: Db
  scheduler: Pick<Scheduler, 'views'>
  /** Identifies this process: a UUID. */
  process: string
  /** Milliseconds between two pages. */
  intervalMs: number
}

/** Maximum number of flows written by one statement. */
const pageSize = 1_000

export type WaitingFor = NonNullable<FlowStatesTable['waits_for']>

/** Maps what a flow waits for to what its deliveries wait for. */
export const waitingFor = {
  endpoint_limit: 'endpoint_limit',
  host_limit: 'endpoint_limit',
  account_share: 'account_share',
  turn: 'claim',
} as const satisfies Record<WaitReason, WaitingFor>

/**
 * Creates the writer. A page has up to 1,000 flows that have work, or had work since the last page but one. If there
 * are more, the next page continues. If there are none, nothing is written.
 */
export function createFlowStates({ db, scheduler, process, intervalMs }: FlowStatesOptions): FlowStates {
  let views = scheduler.views()
  /** Flows that had work when they were last looked at. */
  const busy = new Set<string>()

  /** Returns the next page. It continues where the last page ended, and stops at the last flow. */
  function takePage(since: number): FlowView[] {
    const page: FlowView[] = []
    while (page.length < pageSize) {
      const { value, done } = views.next()
      if (done === true) {
        views = scheduler.views()
        break
      }
      const wasBusy = busy.delete(value.name.flow)
      const isBusy = value.held + value.waiting + value.inHand > 0
      if (isBusy) busy.add(value.name.flow)
      if (isBusy || wasBusy || value.usedAt >= since) page.push(value)
    }
    return page
  }

  return {
    async write() {
      const page = takePage(performance.now() - 2 * intervalMs)
      if (page.length === 0) return
      const statement = sql`
        INSERT INTO flow_states (flow, process, max_in_flight, in_flight, waits_for, updated_at)
        SELECT flow, ${process}::uuid, max_in_flight, in_flight, waits_for, ${queueNow}
        FROM unnest(
          ${plainArray(page.map(({ name }) => name.flow))}::int[],
          ${plainArray(page.map(({ limit }) => Math.floor(limit.limit)))}::int[],
          ${plainArray(page.map(({ held }) => held))}::int[],
          ${plainArray(page.map(({ waitsFor }) => waitsFor && waitingFor[waitsFor]))}::text[]
        ) AS s (flow, max_in_flight, in_flight, waits_for)
        ON CONFLICT (flow, process) DO UPDATE SET max_in_flight = excluded.max_in_flight,
          in_flight = excluded.in_flight, waits_for = excluded.waits_for, updated_at = excluded.updated_at
      `
      await executePrepared(db, { name: 'tell_flow_states' }, statement)
    },
    async clear() {
      // Rows that retention has locked are skipped: retention deletes them.
      await sql`
        DELETE FROM flow_states WHERE (flow, process) IN (
          SELECT flow, process FROM flow_states WHERE process = ${process}::uuid FOR UPDATE SKIP LOCKED
        )
      `.execute(db)
    },
  }
}
