/** How an endpoint treats one request: what it does, and after how many milliseconds. */
export type Reply = { kind: 'accepts' | 'fails' | 'refuses' | 'breaks' | 'hangs'; afterMs: number }

/** `nth` counts the requests to it from 1; `inFlight` is without this one. */
export type Behaviour = (request: { now: number; nth: number; inFlight: number }) => Reply

/** The time limit of an exchange. */
const timeLimitMs = 30_000

export function answersIn(ms: number): Behaviour {
  return () => ({ kind: 'accepts', afterMs: ms })
}

export const hangs: Behaviour = () => ({ kind: 'hangs', afterMs: timeLimitMs })
/** It answers 500 at once. */
export const fails: Behaviour = () => ({ kind: 'fails', afterMs: 2 })
/** Nobody listens. */
export const isDown: Behaviour = () => ({ kind: 'breaks', afterMs: 1 })

/** Does something else in a span of time. */
export function during(from: number, to: number, inside: Behaviour, outside: Behaviour): Behaviour {
  return (request) => (request.now >= from && request.now < to ? inside : outside)(request)
}

/** Changes between two ways every `ms`. */
export function flaps(ms: number, first: Behaviour, second: Behaviour): Behaviour {
  return (request) => (Math.floor(request.now / ms) % 2 === 0 ? first : second)(request)
}

/** Treats one in `n` requests otherwise. */
export function oneIn(n: number, otherwise: Behaviour, usual: Behaviour): Behaviour {
  return (request) => (request.nth % n === 0 ? otherwise : usual)(request)
}

/** Works on `workers` requests at once and has the others wait. */
export function works(workers: number, ms: number): Behaviour {
  return ({ inFlight }) => ({ kind: 'accepts', afterMs: ms * Math.ceil((inFlight + 1) / workers) })
}

/** Answers 503 to what is more than it can work on. */
export function refusesBeyond(workers: number, ms: number): Behaviour {
  return ({ inFlight }) => (inFlight >= workers ? { kind: 'refuses', afterMs: 2 } : { kind: 'accepts', afterMs: ms })
}
