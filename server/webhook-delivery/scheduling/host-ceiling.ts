import { type FlowLimit, isAnswered } from './flow-limit.ts'
import { createRing, type Ring } from './ring.ts'

/*
 * How many requests the flows of an account may have in flight to one host. A part of the ceiling is for flows whose
 * endpoints are known to answer, so that those that hang do not delay them. See docs/delivery-engine.md.
 */

/**
 * `answered`: the endpoint is known to answer. `unanswered`: it is not, and requests to it are in flight that have not been
 * silent for long. `unasked`: it is not, and there are none of these.
 */
export type HostState = 'answered' | 'unanswered' | 'unasked'

export type Host<Flow> = {
  /** Requests in flight, and those reserved. */
  held: number
  /** Of these, those of flows whose endpoints are not known to answer. */
  unanswered: number
  /** Flows that wait for the ceiling. */
  waiting: Record<HostState, Ring<Flow>>
  flows: number
}

export function newHost<Flow>(): Host<Flow> {
  const waiting = { answered: createRing<Flow>(), unanswered: createRing<Flow>(), unasked: createRing<Flow>() }
  return { held: 0, unanswered: 0, waiting, flows: 0 }
}

/** The standing of a flow at its host. `counted`: its requests that are reserved, or in flight and not silent. */
export function standingOf({ limit, counted }: { limit: FlowLimit; counted: number }): HostState {
  if (isAnswered(limit)) return 'answered'
  return counted === 0 ? 'unasked' : 'unanswered'
}

/** Whether a host has room for one more request of a flow, by the standing of that flow. */
export type HostCeiling = (host: Pick<Host<unknown>, 'held' | 'unanswered'>, standing: HostState) => boolean

/**
 * All may use `hostMax` requests together. Flows that are not known to answer use half of them; one that is unasked may
 * start while they use less than three quarters. So an endpoint that hangs on many does not keep a new one from being
 * asked, nor its own deliveries from being claimed, which is how they come to a new URL.
 */
export function createHostCeiling(hostMax: number): HostCeiling {
  const max = {
    answered: Number.POSITIVE_INFINITY,
    unanswered: Math.max(1, Math.floor(hostMax / 2)),
    unasked: Math.ceil((hostMax * 3) / 4),
  }
  return ({ held, unanswered }, standing) => held < hostMax && unanswered < max[standing]
}
