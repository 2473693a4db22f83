/*
 * How many requests one endpoint may have in flight: the limit of a flow. Pure rules over a value; see
 * docs/delivery-engine.md, "How much one endpoint may hold".
 *
 *              first sign of congestion
 *   slow_start ────────────────────────▶ additive ──┐ +1 a round trip; each sign makes it smaller
 *       ▲                                   ▲  │ ◀──┘
 *       │ an answer                         │  │ a sign while the limit is 1, or nobody answers
 *       │                                   │  ▼
 *       └────────────────────────────── stalled     limit 1: one probe every `probeMs`
 *
 * Sources: Jacobson, Congestion Avoidance and Control, 1988 (slow start, additive increase, once a round trip);
 * RFC 9002 §7 (a round trip told by request numbers); Envoy's adaptive concurrency and Netflix's
 * concurrency-limits (latency against the flow's own baseline).
 */

export type FlowPhase = 'slow_start' | 'additive' | 'stalled'

/** Why the limit of a flow shrinks. A quick 4xx or 5xx other than 429 and 503 is no sign. */
export type CongestionSign =
  /** The request was given up after the time limit of an exchange. */
  | 'timed_out'
  /** No connection came about, or it broke before the answer. */
  | 'connection_failed'
  /** 429 or 503. */
  | 'refused'
  /** The request has had no answer for `patienceMs`, and is still in flight. */
  | 'silent'
  /** The answers of a round trip took more than twice as long as the flow's baseline. */
  | 'slower'

export type FlowLimit = Readonly<{
  phase: FlowPhase
  /** Requests in flight at most, rounded down. In [1, max]. */
  limit: number
  /** Requests begun so far. A request has the number that this was when it began, from 0. */
  begun: number
  /** Signs of requests with lower numbers are of the round trip that has made the limit smaller already. */
  shrunkAt: number
  /** The highest number of a request that was answered. -1: none was. */
  answered: number
  /** Latency of an answer, smoothed over about eight. Milliseconds. Null: none came yet. */
  latencyMs: number | null
  /**
   * Mean latency of the fastest round trip since the last one with the fewest requests in flight that was slower: that
   * is how the endpoint has become. Milliseconds. Null: none is complete.
   */
  baselineMs: number | null
  /**
   * The answers of the present round trip, which ends with one of a request numbered `from` or higher, and the limit when
   * it began.
   */
  round: Readonly<{ from: number; limit: number; answers: number; totalMs: number }>
}>

/** The limit to begin with, and the least that `slower` leads to. */
export const initialLimit = 4
/** Milliseconds without an answer after which a request does not count against its flow's limit any more. */
const [leastPatienceMs, mostPatienceMs] = [2_000, 30_000]
/** Milliseconds between the probes of a stalled flow. */
const probeMs = 5_000

/** What remains of the limit. */
const remains: Record<CongestionSign, number> = {
  timed_out: 0.5,
  connection_failed: 0.5,
  refused: 0.7,
  silent: 0.7,
  slower: 0.8,
}

/** Answers by which latency is judged, at least. */
const answersOfARound = 8
/** A round trip is slower than the baseline when it takes this many times as long, and a slack beside. */
const slowerFactor = 2
/** That slack: less while the process is busy. Then what waits in flight waits for the process. Milliseconds. */
const [slackMs, busySlackMs] = [50, 5]

/** The limit of a flow that nothing is known of. */
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

/** Whether an endpoint answers, as far as is known: it has, and it is not one that nobody hears from now. */
export function isAnswered({ phase, latencyMs }: FlowLimit): boolean {
  return phase !== 'stalled' && latencyMs !== null
}

/** Whether a flow may have one more request in flight, beside `counted` that have not been silent for too long. */
export function hasRoom(state: FlowLimit, counted: number): boolean {
  return counted < Math.floor(state.limit)
}

/** Milliseconds that a request begun now may be silent. */
export function patienceMs({ phase, latencyMs }: FlowLimit): number {
  if (phase === 'stalled') return probeMs
  return Math.min(mostPatienceMs, Math.max(leastPatienceMs, 2 * (latencyMs ?? 0)))
}

/** A request begins. Its number is `begun` before this. */
export function afterBegin(state: FlowLimit): FlowLimit {
  return { ...state, begun: state.begun + 1 }
}

export type RoundTrip = {
  /** The number of the request. */
  number: number
  latencyMs: number
  /** Requests in flight that counted against the limit, with this one. One that was not nearly reached does not grow. */
  counted: number
  /** What the limit grows to at most. */
  max: number
  /** Whether this process has more to do than it can, so that a part of the latency is its own. */
  isBusy: boolean
}

/** The endpoint has answered, whatever it said but 429 and 503. */
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
      // Twice: a flow that uses half of its limit has the other half for a burst.
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
  // Slow with few requests is how the endpoint is, and not what many of them make of it.
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
  /** The number of the request. */
  number: number
  sign: CongestionSign
  max: number
}

/** A sign of congestion. Does nothing when the limit has shrunk since the request began: at most once a round trip. */
export function afterSign(state: FlowLimit, { number, sign, max }: Sign): FlowLimit {
  if (number < state.shrunkAt) return state
  if (sign === 'slower' && state.limit <= initialLimit) return state
  const shrunkAt = state.begun
  const isHeard = sign === 'slower' || state.answered >= number
  // Nobody answers: neither this request nor any that began after it.
  if ((sign === 'silent' && !isHeard) || Math.floor(state.limit) <= 1) {
    return { ...state, phase: 'stalled', limit: 1, shrunkAt }
  }
  return { ...state, phase: 'additive', limit: Math.min(max, smaller(state.limit, sign)), shrunkAt }
}

function smaller(limit: number, sign: CongestionSign): number {
  const left = limit * remains[sign]
  // Then the next round trip tells how slow it is with few.
  if (sign === 'slower' && left < 2 * initialLimit) return initialLimit
  return Math.max(1, left)
}
