import { sql } from 'kysely'
import { plainArray } from '../database/arrays.ts'
import type { Handle } from '../database/connection.ts'
import type { FlowStatesTable } from '../database/tables/webhooks.ts'
import { type Queue, queueNow } from '../queue/queue.ts'

/** A URL with deliveries that are due. */
export type SlowDestination = {
  accountId: string
  host: string
  /** When its oldest waiting delivery could have been sent. */
  dueSince: Date
  /** This and the next two: as processes reported in the last half minute. Null: no report. */
  inFlight: number | null
  maxInFlight: number | null
  waitsFor: FlowStatesTable['waits_for']
}

/** Older reports of processes are ignored. Seconds. */
const toldWithinSeconds = 30

/** Returns up to `limit` URLs of all accounts with deliveries that are due, the longest due first. */
export async function slowDestinations(
  handle: Handle,
  queue: Pick<Queue, 'flows'>,
  limit: number,
): Promise<SlowDestination[]> {
  const overdue = await queue.flows.overdue(limit)
  if (overdue.length === 0) return []
  const { rows } = await sql<{ flow: number; in_flight: number; max_in_flight: number; waits_for: string | null }>`
    SELECT flow, sum(in_flight)::int AS in_flight, sum(max_in_flight)::int AS max_in_flight, max(waits_for) AS waits_for
    FROM flow_states
    WHERE flow = ANY(${plainArray(overdue.map(({ flow }) => flow))}::int[])
      AND updated_at > ${queueNow} - make_interval(secs => ${toldWithinSeconds})
    GROUP BY flow
  `.execute(handle)
  const told = new Map(rows.map((row) => [row.flow, row]))
  return overdue.map(({ flow, accountId, host, dueSince }) => {
    const state = told.get(flow)
    return {
      accountId,
      host,
      dueSince,
      inFlight: state?.in_flight ?? null,
      maxInFlight: state?.max_in_flight ?? null,
      waitsFor: (state?.waits_for ?? null) as SlowDestination['waitsFor'],
    }
  })
}
