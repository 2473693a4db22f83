import type { Threshold } from './dynamic-threshold.ts'
import type { CongestionSign, FlowLimit } from './flow-limit.ts'

export type SchedulerSettings = Threshold & {
  /** Requests of a flow that count against its limit, at most. At least 1. */
  flowMax: number
  /** Requests of an account to one host at most, over all of its flows. At least 1. */
  hostMax: number
  /** Deliveries that wait in this process for their requests at most, over all accounts. 0: none do. */
  handMax: number
}

/** The queue of what is for one URL of one account. */
export type FlowName = {
  /** Unique over all accounts. */
  flow: string
  account: string
  host: string
}

/** A request of a flow, from the decision to make it until it is settled. It holds one place all the time. */
export type Request = {
  readonly flow: string
  readonly account: string
  /** Where its delivery is: in the hand of this process, or to be claimed. */
  readonly from: 'hand' | 'queue'
  readonly state: RequestState
}

/**
 * ```
 *   next()        begin()        end()          free()
 *   ──────▶ reserved ──▶ running ───▶ settling ───▶ freed
 *                          │ elapse()   ▲             ▲
 *                          └▶ silent ───┘             └─ also from reserved, running and silent: it was not made
 * ```
 * `reserved`: it is being claimed and read. `silent`: it has been in flight for long without an answer, and does not
 * count against the limit of its flow any more. `settling`: it is over, and is being written down.
 */
export type RequestState = 'reserved' | 'running' | 'silent' | 'settling' | 'freed'

/** What a request says of its endpoint when it is over. */
export type RequestEnd =
  | {
      kind: 'answered'
      latencyMs: number
      /** Whether this process has more to do than it can. Default: no. */
      isBusy?: boolean
    }
  | { kind: 'congested'; sign: Exclude<CongestionSign, 'silent' | 'slower'> }

/** Why a flow that has work starts nothing at this moment. */
export type WaitReason = 'endpoint_limit' | 'host_limit' | 'account_share' | 'turn'

/**
 * `hand`: it is likely to start within a tenth of a second. `later`: it cannot be in hand now, but in a moment, since
 * its endpoint is quick. `queue`: it may take long.
 */
export type Admission = 'hand' | 'later' | 'queue'

export type FlowView = {
  name: FlowName
  limit: FlowLimit
  /** From the claim until they are over, the silent ones included. */
  held: number
  /** What is known to wait in the queue. */
  waiting: number
  /** Deliveries that wait in this process. */
  inHand: number
  /** Null: it has no work. */
  waitsFor: WaitReason | null
  /** When a request of it was last over, to the latest moment that was told. Milliseconds. */
  usedAt: number
}

export type Scheduler = {
  /**
   * Says that so much more waits in the queue of a flow, as far as is known. Who finds a flow by looking offers one, and
   * who claims all that was asked for offers twice as much, so that what is not there takes few places.
   */
  offer(name: FlowName, count: number): void
  /**
   * How many deliveries of a flow this process may take in hand beyond those whose requests are reserved: what it is
   * likely to start within a tenth of a second, within the account's share of the hand. None of a flow that hangs.
   */
  mayTakeInHand(name: FlowName): number
  /**
   * Says that so many deliveries of a flow are about to be taken in hand, or, with a negative number, that as many are
   * not any more. They count as in hand for `mayTakeInHand`, and nothing is started with them.
   */
  expectInHand(name: FlowName, count: number): void
  /** Whether more of a flow waits in the queue and half of what may be in hand is free: time to claim more. */
  isToRefill(name: FlowName): boolean
  /** Where a delivery is best off that is about to be made: see `Destination`. */
  destinationOf(name: FlowName): Admission
  /** So many deliveries of a flow are in hand from now on; a negative number when they are handed back. */
  takeInHand(name: FlowName, count: number): void
  /**
   * Chooses the flow of the next request and reserves its place. Null: none may start now. Its cost is constant on
   * average: setting an account aside is paid for by its having been taken back.
   */
  next(): Request | null
  nameOf(request: Request): FlowName
  /** The request is being made now. Returns how long it may be silent. Milliseconds. */
  begin(request: Request, now: number): number
  /** The request is over: its flow may start another. Does nothing when it was not begun, or is over already. */
  end(request: Request, how: RequestEnd): void
  /**
   * Frees the place, when the request is settled, or when it was not made: then it says nothing of the endpoint.
   * Calling it again does nothing.
   */
  free(request: Request): void
  /** How much was offered to a flow so far, to be told to `drained` when a claim that began now has ended. */
  offers(flow: string): number
  /** A claim found less than it asked for: nothing waits but what was offered since. */
  drained(flow: string, offers: number): void
  /** Notes which requests have been silent for too long. To be called at `nextSilence`, or later. */
  elapse(now: number): void
  /** When `elapse` has something to do at the earliest. Undefined: nothing is in flight. */
  nextSilence(): number | undefined
  /** Forgets flows that hold nothing and have no work since `before`. Their limits begin anew. */
  forgetIdle(before: number): void
  /** Null: nothing is known of the flow. */
  view(flow: string): FlowView | null
  /**
   * Views of all flows, each as it is when it is asked for. It may be left for a while and gone on with: flows that are
   * forgotten meanwhile are passed over, and those that are added come last.
   */
  views(): Iterator<FlowView>
  /** Places held by an account, or by all. */
  held(account?: string): number
}
