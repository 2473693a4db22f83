import { type FlowLimit, isAnswered } from './flow-limit.ts'
import { createRing, type Ring } from './round-robin-list.ts'

/*
 * Limits how many requests an account may have in flight to one host. Part of the ceiling is reserved for flows whose
 * endpoints are known to respond, so that endpoints that hang do not delay them. See
 * docs/architecture/delivery-engine.md.
 */

/**
 * `answered`: the endpoint is known to respond. `unanswered`: it is not, and the flow has requests that are reserved or
 * in flight and not silent. `unasked`: it is not, and the flow has no such requests.
 */
export type HostState = 'answered' | 'unanswered' | 'unasked'

export type Host<Flow> = {
  /** Requests in flight or reserved. */
  held: number
  /** The part of `held` that belongs to flows whose endpoints are not known to respond. */
  unanswered: number
  /** Flows that wait for the ceiling. */
  waiting: Record<HostState, Ring<Flow>>
  flows: number
}

export function newHost<Flow>(): Host<Flow> {
  const waiting = { answered: createRing<Flow>(), unanswered: createRing<Flow>(), unasked: createRing<Flow>() }
  return { held: 0, unanswered: 0, waiting, flows: 0 }
}

/** Returns the state of a flow at its host. `counted`: its requests that are reserved, or in flight and not silent. */
export function standingOf({ limit, counted }: { limit: FlowLimit; counted: number }): HostState {
  if (isAnswered(limit)) return 'answered'
  return counted === 0 ? 'unasked' : 'unanswered'
}

/** Returns true if a host has room for one more request of a flow in this state. */
export type HostCeiling = (host: Pick<Host<unknown>, 'held' | 'unanswered'>, standing: HostState) => boolean

/**
 * Creates the rule. All flows together may use `hostMax` requests. Flows not known to respond use at most half of them;
 * a flow that is `unasked` may start while they use less than three quarters. So an endpoint that hangs with many
 * requests cannot keep a new endpoint from its first request, nor its own deliveries from being claimed, which is how
 * they move to a new URL.
 */
export function createHostCeiling(hostMax: number): HostCeiling {
  const max = {
    answered: Number.POSITIVE_INFINITY,
    unanswered: Math.max(1, Math.floor(hostMax / 2)),
    unasked: Math.ceil((hostMax * 3) / 4),
  }
  return ({ held, unanswered }, standing) => held < hostMax && unanswered < max[standing]
}
