import type { Threshold } from './dynamic-threshold.ts'
import type { CongestionSign, FlowLimit } from './flow-limit.ts'

export type SchedulerSettings = Threshold & {
  /** Maximum number of requests that count against the limit of a flow. At least 1. */
  flowMax: number
  /** Maximum number of requests of an account to one host, over all of its flows. At least 1. */
  hostMax: number
  /** Maximum number of deliveries in hand (waiting in memory for their requests), over all accounts. 0: none. */
  handMax: number
}

/** Identifies a flow: the queue of deliveries for one URL of one account. */
export type FlowName = {
  /** Unique over all accounts. */
  flow: string
  account: string
  host: string
}

/** A request of a flow, from the decision to make it until it is settled. It holds one place for all of that time. */
export type Request = {
  readonly flow: string
  readonly account: string
  /** Where the delivery is: in memory, or in the queue, to be claimed. */
  readonly from: 'hand' | 'queue'
  readonly state: RequestState
}

/**
 * ```
 *   next()        begin()        end()          free()
 *   ──────▶ reserved ──▶ running ───▶ settling ───▶ freed
 *                          │ elapse()   ▲             ▲
 *                          └▶ silent ───┘             └─ also from reserved, running and silent: no request was made
 * ```
 * `reserved`: its delivery is being claimed and read. `silent`: it has been in flight without a response for longer
 * than the patience of its flow, and no longer counts against the limit of the flow. `settling`: the exchange is over,
 * and its result is being written.
 */
export type RequestState = 'reserved' | 'running' | 'silent' | 'settling' | 'freed'

/** The result of a request, as far as it says something about the endpoint. */
export type RequestEnd =
  | {
      kind: 'answered'
      latencyMs: number
      /** True when this process is overloaded, so that part of the latency is its own. Default: false. */
      isBusy?: boolean
    }
  | { kind: 'congested'; sign: Exclude<CongestionSign, 'silent' | 'slower'> }

/** Why a flow with work starts no request at this moment. */
export type WaitReason = 'endpoint_limit' | 'host_limit' | 'account_share' | 'turn'

/**
 * Where a new delivery should go. `hand`: into memory, it will probably start within 250 ms. `later`: it should stay in
 * the outbox for a moment, since memory is full but the endpoint is quick. `queue`: it may wait for long.
 */
export type Admission = 'hand' | 'later' | 'queue'

export type FlowView = {
  name: FlowName
  limit: FlowLimit
  /** Requests from the claim until they are over, silent ones included. */
  held: number
  /** Deliveries known to wait in the queue. */
  waiting: number
  /** Deliveries that wait in memory. */
  inHand: number
  /** Null: the flow has no work. */
  waitsFor: WaitReason | null
  /** When a request of the flow last ended. Milliseconds; it is the latest time that the scheduler was told before. */
  usedAt: number
}

export type Scheduler = {
  /**
   * Adds `count` to the deliveries known to wait in the queue of a flow. The scan of flows offers 1 when it finds work.
   * A claim that gets all it asked for offers twice that number: so the number grows quickly, and a wrong guess takes
   * few places.
   */
  offer(name: FlowName, count: number): void
  /**
   * Returns how many deliveries of a flow may be taken into memory, beyond those whose requests are reserved: as many
   * as will probably start within 250 ms, within the account's share of the memory limit. 0 for a stalled flow.
   */
  mayTakeInHand(name: FlowName): number
  /**
   * Reserves room in memory for `count` deliveries that are about to be taken there. A negative count ends the
   * reservation. Reserved room counts for `mayTakeInHand`, but starts nothing.
   */
  expectInHand(name: FlowName, count: number): void
  /**
   * Returns true when deliveries wait in the queue and at least half of the flow's room in memory is free: time to
   * claim more.
   */
  isToRefill(name: FlowName): boolean
  /** Returns true when deliveries of a flow wait in memory, or room for some is reserved. */
  hasInHand(flow: string): boolean
  /** Returns where a delivery that is about to be created should go: see `Admission`. */
  destinationOf(name: FlowName): Admission
  /** Adds `count` deliveries of a flow to those in memory. A negative count: they were handed back. */
  takeInHand(name: FlowName, count: number): void
  /**
   * Chooses the flow of the next request and reserves its place. Null: none may start now. Amortized constant time:
   * an account is set aside at most once each time it was put back.
   */
  next(): Request | null
  nameOf(request: Request): FlowName
  /** Records that the request starts now. Returns how long it may stay silent. Milliseconds. */
  begin(request: Request, now: number): number
  /**
   * Records that the request is over, so that its flow may start another. Does nothing if it was not begun or is over
   * already.
   */
  end(request: Request, how: RequestEnd): void
  /**
   * Frees the place of a request that is settled, or that was not made and thus says nothing about the endpoint.
   * Calling it again does nothing.
   */
  free(request: Request): void
  /**
   * Returns how many times a flow was offered work so far. Read it before a claim and pass it to `drained` after it.
   */
  offers(flow: string): number
  /**
   * Records that a claim found less than it asked for. The flow is then empty, unless work was offered since the claim
   * began.
   */
  drained(flow: string, offers: number): void
  /** Marks requests that have been silent for too long. Call it at `nextSilence` or later. */
  elapse(now: number): void
  /** Returns the earliest time at which `elapse` has something to do. Undefined: nothing is in flight. */
  nextSilence(): number | undefined
  /** Forgets flows that hold nothing and have had no work since `before`. They start again with the initial limit. */
  forgetIdle(before: number): void
  /** Returns the state of a flow. Null: the flow is unknown. */
  view(flow: string): FlowView | null
  /**
   * Iterates over the state of all flows; each is read at the moment it is returned. The iteration may be paused: flows
   * that are forgotten meanwhile are skipped, and new ones come last.
   */
  views(): Iterator<FlowView>
  /** Returns the number of places held by an account, or by all. */
  held(account?: string): number
}
