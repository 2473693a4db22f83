import { createDeadlines } from './deadline-heap.ts'
import { createAccountTurns } from './deficit-round-robin.ts'
import { mayHoldMore, roomFor } from './dynamic-threshold.ts'
import {
  afterAnswer,
  afterBegin,
  afterSign,
  type FlowLimit,
  hasRoom,
  initialLimit,
  isAnswered,
  newFlowLimit,
  patienceMs,
} from './flow-limit.ts'
import { type Account, createFlows, type Flow } from './flows.ts'
import { createHostCeiling, type Host, type HostState, standingOf } from './host-ceiling.ts'
import type { Ring } from './round-robin-list.ts'
import type {
  FlowName,
  FlowView,
  Request,
  RequestEnd,
  RequestState,
  Scheduler,
  SchedulerSettings,
  WaitReason,
} from './scheduler-types.ts'

/*
 * Decides which flow starts a request next. It has no I/O, clock or timers: its owner tells it what happens and when.
 * See docs/architecture/delivery-engine.md.
 *
 * A flow may start when it has work, its limit has room and its host is below the ceiling. Part of the ceiling is
 * reserved for flows whose endpoints are known to respond. Accounts with such flows take turns (deficit round robin).
 * Within an account its flows take turns, one start each.
 */

export const defaultSettings: SchedulerSettings = {
  places: 1_024,
  alpha: 4,
  flowMax: 64,
  hostMax: 128,
  handMax: 2_048,
}

/**
 * Deliveries that a flow will probably start within this time may be in memory. A flow with a higher latency is slow:
 * deliveries that it cannot start wait in the queue. Milliseconds.
 */
const aheadMs = 250

/** Returns how many deliveries a flow can start in `aheadMs`. */
function aheadOf({ limit, latencyMs }: FlowLimit): number {
  return latencyMs === null ? initialLimit : Math.floor((limit * aheadMs) / Math.max(1, latencyMs))
}

function isAtHost(state: Flow['state']): state is HostState {
  return state === 'answered' || state === 'unanswered' || state === 'unasked'
}

function moveToEnd(ring: Ring<Flow>, flow: Flow): void {
  if (!ring.has(flow)) return
  ring.remove(flow)
  ring.add(flow)
}

/** A request with the fields that only the scheduler sees. */
type HeldRequest = Omit<Request, 'state'> & { of: Flow; number: number; state: RequestState }

export function createScheduler(settings: SchedulerSettings): Scheduler {
  const { places, alpha, flowMax, hostMax, handMax } = settings
  const hand = { places: handMax, alpha }
  const hasRoomAtHost = createHostCeiling(hostMax)
  const flows = createFlows(flowMax)
  const turns = createAccountTurns<Account>({ places, alpha })
  const silences = createDeadlines<HeldRequest>()
  /** Deliveries in memory over all accounts, and room reserved for more. */
  let inHand = 0
  let latest = 0

  /** Moves a flow to the ring that fits its state. Call it after every change of the flow. */
  function placeFlow(flow: Flow): void {
    const { account, host } = flow
    const { state: before } = flow
    const state = stateOf(flow)
    if (state !== before) {
      if (before === 'ready') account.ready.remove(flow)
      else if (isAtHost(before)) host.waiting[before].remove(flow)
      if (state === 'ready') account.ready.add(flow)
      else if (isAtHost(state)) host.waiting[state].add(flow)
      flow.state = state
      // The flow may have been admitted for a free request of its host that it does not use.
      if (before === 'ready') admitNext(host)
    }
    if (state === 'ready' && isAnswered(flow.limit)) account.readyAnswered.add(flow)
    else account.readyAnswered.remove(flow)
    turns.place(account)
  }

  /** Makes one flow ready that waits for the ceiling of its host, if the host has room. */
  function admitNext({ waiting }: Host<Flow>): void {
    // Flows that are known to respond come last, since part of the ceiling is reserved for them anyway.
    admitFirst(waiting.unasked) || admitFirst(waiting.unanswered) || admitFirst(waiting.answered)
  }

  /** Makes the first flow with work and room ready, if the host has room for it. */
  function admitFirst(waiting: Ring<Flow>): boolean {
    for (let next = waiting.first(); next !== undefined && hasHostRoom(next); next = waiting.first()) {
      placeFlow(next)
      if (next.state === 'ready') return true
    }
    return false
  }

  function stateOf(flow: Flow): Flow['state'] {
    if (flow.waiting <= 0 && flow.inHand <= 0) return 'no_work'
    if (!hasRoom(flow.limit, flow.counted)) return 'at_limit'
    return hasHostRoom(flow) ? 'ready' : standingOf(flow)
  }

  function hasHostRoom(flow: Flow): boolean {
    return hasRoomAtHost(flow.host, standingOf(flow))
  }

  function setLimit(flow: Flow, limit: FlowLimit): void {
    const was = isAnswered(flow.limit)
    const is = isAnswered(limit)
    flow.limit = limit
    if (was !== is) changeUnanswered(flow, is ? -flow.held : flow.held)
  }

  function changeUnanswered({ account, host }: Flow, by: number): void {
    host.unanswered += by
    turns.changeUnanswered(account, by)
  }

  /** Adds `by` to the number of requests that a flow holds. */
  function changeHeld(flow: Flow, by: 1 | -1): void {
    flow.held += by
    flow.host.held += by
    if (!isAnswered(flow.limit)) changeUnanswered(flow, by)
  }

  /** Returns the flow of an account whose turn it is. Undefined: none may start after all. */
  function flowInTurn(account: Account): Flow | undefined {
    const ring = turns.mayStartUnanswered(account) ? account.ready : account.readyAnswered
    for (let flow = ring.first(); flow !== undefined; flow = ring.first()) {
      // Another flow may have taken the last free request of the host.
      placeFlow(flow)
      if (flow.state === 'ready') return flow
    }
    return undefined
  }

  function reserve(flow: Flow): HeldRequest {
    const { account, name } = flow
    const from = flow.inHand > 0 ? 'hand' : 'queue'
    if (from === 'hand') changeInHand(flow, -1)
    else flow.waiting -= 1
    moveToEnd(account.ready, flow)
    moveToEnd(account.readyAnswered, flow)
    turns.take(account)
    changeHeld(flow, 1)
    flow.counted += 1
    placeFlow(flow)
    return { flow: name.flow, account: account.id, from, of: flow, number: 0, state: 'reserved' }
  }

  function changeInHand(flow: Flow, by: number): void {
    flow.inHand += by
    flow.account.inHand += by
    inHand += by
  }

  /** Stops counting a request that is over, or was not made, against its flow and its host. */
  function leaveFlow({ of: flow, state }: HeldRequest): void {
    changeHeld(flow, -1)
    if (state === 'silent') flow.account.silent -= 1
    else flow.counted -= 1
    if (state === 'running') flow.running -= 1
    flow.usedAt = latest
    admitNext(flow.host)
    placeFlow(flow)
  }

  function learn({ of: flow, number, state }: HeldRequest, how: RequestEnd): void {
    if (how.kind === 'congested') {
      setLimit(flow, afterSign(flow.limit, { number, sign: how.sign, max: flowMax }))
      return
    }
    // Reserved requests may never be made: only requests in flight let the limit grow.
    const counted = flow.running + (state === 'silent' ? 1 : 0)
    const { latencyMs, isBusy = false } = how
    setLimit(flow, afterAnswer(flow.limit, { number, latencyMs, counted, max: flowMax, isBusy }))
  }

  function mayTakeInHand(name: FlowName): number {
    const flow = flows.find(name.flow)
    const held = flows.findAccount(name.account)?.inHand ?? 0
    const limit = flow?.limit ?? newFlowLimit(flowMax)
    if (limit.phase === 'stalled') return 0
    const own = flow === undefined ? 0 : flow.inHand + flow.expected
    return Math.max(0, Math.min(aheadOf(limit) - own, roomFor(hand, held, inHand)))
  }

  /**
   * Returns true when a flow waits for places held by requests of its account and at least half of those hang: that may
   * take long.
   */
  function waitsForSilent(flow: Flow): boolean {
    const { held, silent } = flow.account
    const reason = waitsFor(flow)
    return (reason === 'account_share' || reason === 'host_limit') && 2 * silent >= held
  }

  function waitsFor(flow: Flow): WaitReason | null {
    switch (flow.state) {
      case 'no_work':
        return null
      case 'at_limit':
        return 'endpoint_limit'
      case 'ready':
        return mayHoldMore(settings, flow.account.held, turns.taken) &&
          (isAnswered(flow.limit) || turns.mayStartUnanswered(flow.account))
          ? 'turn'
          : 'account_share'
      default:
        return 'host_limit'
    }
  }

  function viewOf(flow: Flow): FlowView {
    const { name, limit, held, waiting, inHand, usedAt } = flow
    return { name, limit, held, waiting, inHand, waitsFor: waitsFor(flow), usedAt }
  }

  return {
    offer(name, count) {
      const flow = flows.of(name, latest)
      flow.waiting += count
      flow.offers += 1
      placeFlow(flow)
    },
    mayTakeInHand,
    expectInHand(name, count) {
      const flow = flows.of(name, latest)
      flow.expected += count
      flow.account.inHand += count
      inHand += count
    },
    isToRefill(name) {
      const flow = flows.find(name.flow)
      if (flow === undefined || flow.waiting <= 0) return false
      return mayTakeInHand(name) > flow.inHand + flow.expected
    },
    hasInHand(key) {
      const flow = flows.find(key)
      return flow !== undefined && flow.inHand + flow.expected > 0
    },
    destinationOf(name) {
      const flow = flows.find(name.flow)
      // Deliveries in the queue go first.
      if ((flow?.waiting ?? 0) <= 0 && mayTakeInHand(name) > 0) return 'hand'
      const limit = flow?.limit ?? newFlowLimit(flowMax)
      const { phase, latencyMs } = limit
      // So it may have something in memory: it would stay at `later` forever otherwise.
      const isQuick = phase !== 'stalled' && latencyMs !== null && latencyMs <= aheadMs
      if (!isQuick) return 'queue'
      return flow !== undefined && waitsForSilent(flow) ? 'queue' : 'later'
    },
    takeInHand(name, count) {
      const flow = flows.of(name, latest)
      changeInHand(flow, count)
      placeFlow(flow)
    },
    next() {
      for (let account = turns.current(); account !== undefined; account = turns.current()) {
        const flow = flowInTurn(account)
        if (flow !== undefined) return reserve(flow)
      }
      return null
    },
    nameOf: (request) => (request as HeldRequest).of.name,
    begin(request, now) {
      const held = request as HeldRequest
      const { of: flow } = held
      latest = Math.max(latest, now)
      held.state = 'running'
      flow.running += 1
      held.number = flow.limit.begun
      const patience = patienceMs(flow.limit)
      flow.limit = afterBegin(flow.limit)
      silences.add(held, now + patience)
      return patience
    },
    end(request, how) {
      const held = request as HeldRequest
      if (held.state !== 'running' && held.state !== 'silent') return
      learn(held, how)
      leaveFlow(held)
      held.state = 'settling'
    },
    free(request) {
      const held = request as HeldRequest
      if (held.state === 'freed') return
      if (held.state !== 'settling') leaveFlow(held)
      held.state = 'freed'
      const { account } = held.of
      turns.release(account)
      flows.forgetIfEmpty(account)
    },
    offers: (key) => flows.find(key)?.offers ?? 0,
    drained(key, offers) {
      const flow = flows.find(key)
      if (flow === undefined || flow.offers !== offers) return
      flow.waiting = 0
      placeFlow(flow)
    },
    elapse(now) {
      latest = Math.max(latest, now)
      for (let held = silences.takeDue(now); held !== undefined; held = silences.takeDue(now)) {
        if (held.state !== 'running') continue
        const { of: flow, number } = held
        held.state = 'silent'
        flow.counted -= 1
        flow.running -= 1
        flow.account.silent += 1
        setLimit(flow, afterSign(flow.limit, { number, sign: 'silent', max: flowMax }))
        placeFlow(flow)
      }
    },
    nextSilence: () => silences.earliest(),
    forgetIdle: flows.forgetIdle,
    view(key) {
      const flow = flows.find(key)
      return flow === undefined ? null : viewOf(flow)
    },
    *views() {
      for (const flow of flows.all()) yield viewOf(flow)
    },
    held: (id) => (id === undefined ? turns.taken : (flows.findAccount(id)?.held ?? 0)),
  }
}
