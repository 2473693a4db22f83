/*
 * How many requests one endpoint may have in flight: the limit of a flow. Pure functions over a value; see
 * docs/architecture/delivery-engine.md, "How much an endpoint may hold".
 *
 *              first sign of congestion
 *   slow_start ────────────────────────▶ additive ──┐ +1 a round trip; each sign makes it smaller
 *       ▲                                   ▲  │ ◀──┘
 *       │ a response                        │  │ a sign while the limit is 1, or no response to this or a later request
 *       │                                   │  ▼
 *       └────────────────────────────── stalled     limit 1: one probe every `probeMs`
 *
 * Sources: Jacobson, Congestion Avoidance and Control, 1988 (slow start, additive increase, once a round trip);
 * RFC 9002 §7 (a round trip told by request numbers); Envoy's adaptive concurrency and Netflix's
 * concurrency-limits (latency against the flow's own baseline).
 */

export type FlowPhase = 'slow_start' | 'additive' | 'stalled'

/** Why the limit of a flow shrinks. A quick 4xx or 5xx other than 429 and 503 is no sign of congestion. */
export type CongestionSign =
  /** The request was aborted at the time limit of an exchange. */
  | 'timed_out'
  /** The connection could not be opened, or broke before the response. */
  | 'connection_failed'
  /** The response was 429 or 503. */
  | 'refused'
  /** The request has had no response for `patienceMs`, and is still in flight. */
  | 'silent'
  /** The responses of a round trip took more than twice as long as the flow's baseline. */
  | 'slower'

export type FlowLimit = Readonly<{
  phase: FlowPhase
  /** Maximum number of requests in flight, in [1, max]. Its fraction is ignored. */
  limit: number
  /** Requests begun so far. A request's number is this count when it began, from 0. */
  begun: number
  /**
   * The limit last shrank when `begun` had this value. Signs of requests with lower numbers belong to the round trip
   * that shrank it, and are ignored.
   */
  shrunkAt: number
  /** The highest number of a request that got a response. -1: none did. */
  answered: number
  /** Latency of responses, an exponential moving average with weight 1/8. Milliseconds. Null: no response yet. */
  latencyMs: number | null
  /**
   * Mean latency of the fastest round trip. A round trip that is slower with at most `initialLimit` requests in flight
   * replaces it: that is how fast the endpoint is now. Milliseconds. Null: no round trip is complete.
   */
  baselineMs: number | null
  /**
   * The current round trip: its responses so far, and the limit when it began. It ends with a response to a request
   * numbered `from` or higher.
   */
  round: Readonly<{ from: number; limit: number; answers: number; totalMs: number }>
}>

/** The limit of a new flow, and the lowest limit that `slower` leads to. */
export const initialLimit = 4
/** Bounds of `patienceMs`. Milliseconds. */
const [leastPatienceMs, mostPatienceMs] = [2_000, 30_000]
/** Milliseconds between the probes of a stalled flow. */
const probeMs = 5_000

/** The factor by which each sign multiplies the limit. */
const remains: Record<CongestionSign, number> = {
  timed_out: 0.5,
  connection_failed: 0.5,
  refused: 0.7,
  silent: 0.7,
  slower: 0.8,
}

/** Minimum number of responses in a round trip, so that its mean latency says something. */
const answersOfARound = 8
/**
 * A round trip is slower than the baseline when its mean exceeds this factor times the baseline, plus the slack below.
 */
const slowerFactor = 2
/**
 * The slack. It is smaller while the process is overloaded, since requests in flight then wait for the process.
 * Milliseconds.
 */
const [slackMs, busySlackMs] = [50, 5]

/** Returns the limit of a flow that nothing is known about. */
export function newFlowLimit(max: number): FlowLimit {
  return {
    phase: 'slow_start',
    limit: Math.min(max, initialLimit),
    begun: 0,
    shrunkAt: 0,
    answered: -1,
    latencyMs: null,
    baselineMs: null,
    round: { from: 0, limit: initialLimit, answers: 0, totalMs: 0 },
  }
}

/** Returns true if the endpoint is known to respond: it has responded, and the flow is not stalled. */
export function isAnswered({ phase, latencyMs }: FlowLimit): boolean {
  return phase !== 'stalled' && latencyMs !== null
}

/** Returns true if a flow may have one more request in flight, beside `counted` requests that are not silent. */
export function hasRoom(state: FlowLimit, counted: number): boolean {
  return counted < Math.floor(state.limit)
}

/** Returns how long a request that begins now may be silent. Milliseconds. */
export function patienceMs({ phase, latencyMs }: FlowLimit): number {
  if (phase === 'stalled') return probeMs
  return Math.min(mostPatienceMs, Math.max(leastPatienceMs, 2 * (latencyMs ?? 0)))
}

/** Returns the state after a request began. The request's number is `begun` before this call. */
export function afterBegin(state: FlowLimit): FlowLimit {
  return { ...state, begun: state.begun + 1 }
}

export type RoundTrip = {
  /** The number of the request, as `begun` was when it began. */
  number: number
  latencyMs: number
  /**
   * Requests in flight that count against the limit, this one included. The limit grows only if they nearly reach it.
   */
  counted: number
  /** The upper bound of the limit. */
  max: number
  /** True when this process is overloaded, so that part of the latency is its own. */
  isBusy: boolean
}

/** Returns the state after a response with any status but 429 and 503. */
export function afterAnswer(state: FlowLimit, answer: RoundTrip): FlowLimit {
  const { number, latencyMs } = answer
  const heard: FlowLimit = {
    ...state,
    answered: Math.max(state.answered, number),
    latencyMs: state.latencyMs === null ? latencyMs : state.latencyMs + (latencyMs - state.latencyMs) / 8,
  }
  return afterRound({ ...heard, ...grown(heard, answer) }, answer)
}

function grown({ phase, limit }: FlowLimit, { counted, max }: RoundTrip): Pick<FlowLimit, 'phase' | 'limit'> {
  switch (phase) {
    case 'stalled':
      return { phase: 'slow_start', limit: Math.min(max, 2) }
    case 'slow_start':
      // The factor 2 lets a flow that uses half of its limit grow, so that the other half is there for a burst.
      return { phase, limit: 2 * counted >= limit ? Math.min(max, limit + 1) : limit }
    case 'additive':
      return { phase, limit: counted >= limit - 1 ? Math.min(max, limit + 1 / limit) : limit }
  }
}

function afterRound(state: FlowLimit, { number, latencyMs, max, isBusy }: RoundTrip): FlowLimit {
  const round = {
    ...state.round,
    answers: state.round.answers + 1,
    totalMs: state.round.totalMs + latencyMs,
  }
  if (number < round.from || round.answers < answersOfARound) return { ...state, round }
  const meanMs = round.totalMs / round.answers
  const slack = isBusy ? busySlackMs : slackMs
  const isSlower = state.baselineMs !== null && meanMs > slowerFactor * state.baselineMs + slack
  // Slowness with few requests in flight is how fast the endpoint is, and not caused by their number.
  const isHowItIs = isSlower && state.round.limit <= initialLimit
  const next: FlowLimit = {
    ...state,
    baselineMs: isHowItIs ? meanMs : Math.min(meanMs, state.baselineMs ?? meanMs),
    round: { from: state.begun, limit: state.limit, answers: 0, totalMs: 0 },
  }
  if (!isSlower || isHowItIs) return next
  const shrunk = afterSign(next, { number, sign: 'slower', max })
  return { ...shrunk, round: { ...next.round, limit: shrunk.limit } }
}

export type Sign = {
  /** The number of the request, as `begun` was when it began. */
  number: number
  sign: CongestionSign
  max: number
}

/**
 * Returns the state after a sign of congestion: unchanged if the limit has shrunk since the request began, so it
 * shrinks at most once a round trip.
 */
export function afterSign(state: FlowLimit, { number, sign, max }: Sign): FlowLimit {
  if (number < state.shrunkAt) return state
  if (sign === 'slower' && state.limit <= initialLimit) return state
  const shrunkAt = state.begun
  const isHeard = sign === 'slower' || state.answered >= number
  // The endpoint is silent: neither this request nor a later one got a response.
  if ((sign === 'silent' && !isHeard) || Math.floor(state.limit) <= 1) {
    return { ...state, phase: 'stalled', limit: 1, shrunkAt }
  }
  return { ...state, phase: 'additive', limit: Math.min(max, smaller(state.limit, sign)), shrunkAt }
}

function smaller(limit: number, sign: CongestionSign): number {
  const left = limit * remains[sign]
  // The next round trip then shows how slow the endpoint is with few requests.
  if (sign === 'slower' && left < 2 * initialLimit) return initialLimit
  return Math.max(1, left)
}
