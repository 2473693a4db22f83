import type { Clock } from '../lib/clock.ts'
import type { Lane } from '../shared/lanes.ts'
import { allowedConnections, mostInBulk, type Pace, slowedPace } from './host-connection-limit.ts'
import type { Session, SessionError, SessionTarget } from './session.ts'
import { perSecond, type Throughput } from './throughput.ts'

/** Conversations of the lane `single` with a host that begin before one in bulk that waits. */
const singlePerBulk = 3

/** Maximum hosts whose pace is remembered without open connections. */
const maxRemembered = 10_000

/** A host to connect to. */
export type PoolTarget = Omit<SessionTarget, 'address'> & {
  /** Returns the addresses in the order to try them. Called to open a connection. Rejects with SessionError. */
  addresses(): Promise<readonly string[]>
  /**
   * Returns the milliseconds to avoid the host after `times` consecutive failures; 0: do not avoid it. Meanwhile
   * `hold` rejects at once.
   */
  backoffMsAfter(error: SessionError, times: number): number
}

export type PooledSession = { session: Session; target: PoolTarget; messages: number; stopTimer: (() => void) | null }

/** The state of one host in a pool. */
export type Host = {
  open: number
  /** Number of open connections with a session, in use or idle. */
  working: number
  /** Callers that wait for a connection, by lane. */
  waiting: Record<Lane, number>
  /** Connections that conversations of the lane `bulk` use. */
  inBulk: number
  /** Conversations of the lane `single` that have begun since one in bulk waits. */
  passedBulk: number
  idle: PooledSession[]
  pace: Pace | null
  throughput: Throughput
  /** True when the last attempt to reach the host failed. */
  isAway: boolean
  /** The back-off of the host, with the error that caused it; null: none. */
  rest: { error: SessionError; until: Date; times: number } | null
}

/** The hosts of a pool: their connections, how many each may have now, and which are in back-off. */
export class PoolHosts {
  readonly #hosts = new Map<string, Host>()
  readonly #max: number
  readonly #clock: Clock

  /** @param max Maximum connections to one host. */
  constructor(max: number, clock: Clock) {
    this.#max = max
    this.#clock = clock
  }

  /** Returns the host with a name. It is remembered until `forget`. */
  of(name: string): Host {
    const known = this.#hosts.get(name)
    if (known !== undefined) return known
    const host: Host = {
      open: 0,
      working: 0,
      waiting: { single: 0, bulk: 0 },
      inBulk: 0,
      passedBulk: 0,
      idle: [],
      pace: null,
      throughput: { second: 0, count: 0, before: 0 },
      isAway: false,
      rest: null,
    }
    this.#hosts.set(name, host)
    return host
  }

  all(): Iterable<Host> {
    return this.#hosts.values()
  }

  /** Forgets a host without connections and waiting callers, unless it is slowed down or in back-off. */
  forget(name: string): void {
    const host = this.#hosts.get(name)
    if (host === undefined || host.open > 0 || host.waiting.single + host.waiting.bulk > 0) return
    const isUsual = !this.#isSlowed(name) && this.backoffOf(name) === null
    if (isUsual || this.#hosts.size > maxRemembered) this.#hosts.delete(name)
  }

  /**
   * Returns how many more conversations of a lane with a host may begin, besides those that run or wait: those that wait
   * in bulk do not count for what is sent singly. The limit is twice the allowed connections. A fast host that is not
   * slowed down may get as many as it completed in a second lately. A host in back-off counts like any other, because its
   * conversations fail at once.
   */
  roomFor(name: string, lane: Lane): number {
    const host = this.#hosts.get(name)
    const enough = 2 * (this.backoffOf(name) === null ? this.allowed(name) : this.#max)
    if (host === undefined) return enough
    const done = this.#isSlowed(name) ? 0 : perSecond(host.throughput, this.#clock.now())
    const before = host.waiting.single + (lane === 'bulk' ? host.waiting.bulk : 0)
    return Math.max(0, Math.max(enough, done) - (host.open - host.idle.length + before))
  }

  /** Returns how many connections a host may have now. */
  allowed(name: string): number {
    const host = this.#hosts.get(name)
    // One connection probes whether the host is back.
    if (host?.isAway) return 1
    return allowedConnections(host?.pace ?? null, this.#max, this.#clock.now())
  }

  /** Returns whether the next connection of a host is for bulk, which waits: it gets every fourth at least. */
  isTurnOfBulk(name: string): boolean {
    const { waiting, passedBulk } = this.of(name)
    return waiting.bulk > 0 && passedBulk >= singlePerBulk
  }

  /** Notes that a conversation with a host begins. */
  countTurn(name: string, lane: Lane): void {
    const host = this.of(name)
    host.passedBulk = lane === 'single' && host.waiting.bulk > 0 ? host.passedBulk + 1 : 0
  }

  /** Returns whether a host may have another conversation in bulk now. */
  mayUseInBulk(name: string): boolean {
    return this.of(name).inBulk < mostInBulk(this.allowed(name))
  }

  #isSlowed(name: string): boolean {
    return this.allowed(name) < this.#max
  }

  /** Lowers how many connections a host may have, because a conversation begun at `begunAt` was refused as too much. */
  slow(name: string, begunAt: Date): void {
    const host = this.of(name)
    host.pace = slowedPace(host.pace, { max: this.#max, begunAt, now: this.#clock.now() })
  }

  /**
   * Returns whether an error may only mean that the host refuses another connection. If so, lowers its limit to the
   * number of working connections. If none works, marks the host as away: those still being opened show whether it is.
   */
  isFull(name: string, error: SessionError): boolean {
    const host = this.of(name)
    if (host.open <= 1 || !isOfConnection(error)) return false
    if (host.working === 0) host.isAway = true
    else host.pace = { connections: host.working, cutAt: this.#clock.now() }
    return true
  }

  /** Returns the back-off of a host; null: it is in none. */
  backoffOf(name: string): Host['rest'] {
    const rest = this.#hosts.get(name)?.rest ?? null
    return rest !== null && this.#clock.now() < rest.until ? rest : null
  }

  /** Puts a host without another connection into back-off. Returns false if it stays out of it. */
  backOff(target: PoolTarget, error: SessionError): boolean {
    const host = this.of(target.name)
    const times = (host.rest?.times ?? 0) + 1
    const restMs = target.backoffMsAfter(error, times)
    if (restMs === 0 || host.open > 1) return false
    host.rest = { error, until: new Date(this.#clock.now().getTime() + restMs), times }
    return true
  }
}

/** Returns whether an error may concern one connection only: a network error, or a temporary refusal up to EHLO. */
function isOfConnection({ stage, reply, isPermanent }: SessionError): boolean {
  if (isPermanent || (stage !== 'connect' && stage !== 'greeting' && stage !== 'ehlo')) return false
  return reply === null || reply.code < 500
}
