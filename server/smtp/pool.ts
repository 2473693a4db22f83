import type { Clock } from '../lib/clock.ts'
import type { StartTimer } from '../lib/timer.ts'
import { unlessAborted } from '../lib/unless-aborted.ts'
import { brokenOff } from './connection.ts'
import { allowedConnections, type Pace, slowedPace } from './host-connection-limit.ts'
import { openSession, type Session, SessionError, type SessionMeans, type SessionTarget } from './session.ts'
import { countOne, perSecond, type Throughput } from './throughput.ts'
import { quitTimeoutMs } from './time-limits.ts'

/** How long an idle connection is kept open. Milliseconds. */
const idleTimeoutMs = 10_000
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

export type PoolLimits = {
  /** Maximum connections in total. */
  connections: number
  connectionsPerHost: number
  messagesPerConnection: number
}

export type PoolOptions = { limits: PoolLimits; means: SessionMeans; clock: Clock; startTimer: StartTimer }

/** A session borrowed from the pool for one conversation. */
export type BorrowedSession = {
  session: Session
  /** True when the session was used before, so that the server may have closed it meanwhile. */
  isReused: boolean
  /** Returns the session to the pool. `congested`: the host asked for fewer or slower messages. */
  release(result: { isReusable: boolean; congested: boolean }): void
}

type PooledSession = { session: Session; target: PoolTarget; messages: number; stopTimer: (() => void) | null }

type QueuedSession = {
  target: PoolTarget
  fresh: boolean
  serve(pooled: PooledSession | null): void
  refuse(error: SessionError): void
}

type Host = {
  open: number
  /** Number of open connections with a session, in use or idle. */
  working: number
  waiting: number
  idle: PooledSession[]
  pace: Pace | null
  throughput: Throughput
  /** True when the last attempt to reach the host failed. */
  isAway: boolean
  /** The back-off of the host, with the error that caused it; null: none. */
  rest: { error: SessionError; until: Date; times: number } | null
}

/**
 * A pool of SMTP connections to all hosts. It limits connections in total and per host (fewer while a host asks for
 * less) and messages per connection, and closes idle connections. Callers wait for a free connection in FIFO order.
 */
export class Pool {
  readonly #options: PoolOptions
  readonly #hosts = new Map<string, Host>()
  readonly #queue = new Set<QueuedSession>()
  readonly #closing = new Set<Promise<void>>()
  #open = 0
  #isServing = false
  #mustServe = false
  #isClosed = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /**
   * Returns how many more conversations with a host may begin, besides those that run or wait. The limit is twice the
   * allowed connections. A fast host that is not slowed down may get as many as it completed in a second lately. A
   * host in back-off counts like any other, because its conversations fail at once.
   */
  roomFor(name: string): number {
    const host = this.#hosts.get(name)
    const enough = 2 * (this.#backoffOf(name) === null ? this.#allowed(name) : this.#options.limits.connectionsPerHost)
    if (host === undefined) return enough
    const done = this.#isSlowed(name) ? 0 : perSecond(host.throughput, this.#options.clock.now())
    return Math.max(0, Math.max(enough, done) - (host.open - host.idle.length + host.waiting))
  }

  /** Returns whether a host is in back-off after a failure. */
  isBackingOff(name: string): boolean {
    return this.#backoffOf(name) !== null
  }

  /**
   * Returns a session with the first address of the target that accepts one, once there is room. `fresh`: only a new
   * session. If the host refuses another connection while others work, waits until one of those is free. Throws
   * SessionError with the error of the last address, and at once while the host is in back-off. `signal` ends the wait.
   */
  async hold(target: PoolTarget, signal: AbortSignal, { fresh = false } = {}): Promise<BorrowedSession> {
    for (;;) {
      const held = await this.#tryHold(target, signal, fresh)
      if (held !== null) return held
    }
  }

  /** Waits for a session once. Null: the host refuses another connection but has others, so the caller waits again. */
  async #tryHold(target: PoolTarget, signal: AbortSignal, fresh: boolean): Promise<BorrowedSession | null> {
    const pooled = await this.#waitForSlot(target, signal, fresh)
    if (pooled !== null) return this.#borrow(pooled)
    const begunAt = this.#options.clock.now()
    try {
      const session = await this.#openAny(target, signal)
      const host = this.#hostOf(target.name)
      host.isAway = false
      host.rest = null
      host.working += 1
      return this.#borrow({ session, target, messages: 0, stopTimer: null })
    } catch (error) {
      if (!signal.aborted && !this.#isClosed && this.#isFull(target.name, error)) {
        this.#freeSlot(target.name)
        return null
      }
      if (error instanceof SessionError && error.reply !== null) this.#slow(target.name, begunAt)
      else if (!signal.aborted) this.#hostOf(target.name).isAway = true
      if (error instanceof SessionError && !signal.aborted) this.#backOff(target, error)
      this.#freeSlot(target.name)
      throw error
    }
  }

  /**
   * Returns whether an error may only mean that the host refuses another connection. If so, lowers its limit to the
   * number of working connections. If none works, marks the host as away: those still being opened show whether it is.
   */
  #isFull(name: string, error: unknown): boolean {
    const host = this.#hostOf(name)
    if (host.open <= 1 || !(error instanceof SessionError) || !isOfConnection(error)) return false
    if (host.working === 0) host.isAway = true
    else host.pace = { connections: host.working, cutAt: this.#options.clock.now() }
    return true
  }

  /** Closes all idle sessions with QUIT. Waiting callers get an error that says that the service stopped. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const waiting of this.#queue) waiting.refuse(stopped(waiting.target.name))
    for (const host of this.#hosts.values()) {
      for (const pooled of [...host.idle]) this.#closeIdle(pooled)
    }
    await Promise.all(this.#closing)
  }

  /** Waits for a slot, and returns its idle session or, for a new connection, null. */
  #waitForSlot(target: PoolTarget, signal: AbortSignal, fresh: boolean): Promise<PooledSession | null> {
    const { promise, resolve, reject } = Promise.withResolvers<PooledSession | null>()
    const host = this.#hostOf(target.name)
    const abort = () => waiting.refuse(stopped(target.name))
    const leave = () => {
      signal.removeEventListener('abort', abort)
      this.#queue.delete(waiting)
      host.waiting -= 1
    }
    const waiting: QueuedSession = {
      target,
      fresh,
      serve(pooled) {
        leave()
        resolve(pooled)
      },
      refuse: (error) => {
        leave()
        this.#forget(target.name)
        reject(error)
      },
    }
    host.waiting += 1
    this.#queue.add(waiting)
    signal.addEventListener('abort', abort)
    const rest = this.#backoffOf(target.name)
    if (signal.aborted || this.#isClosed) abort()
    else if (rest !== null) waiting.refuse(rest.error)
    else this.#serve()
    return promise
  }

  /** Gives free slots to the waiting callers, in their order. */
  #serve(): void {
    this.#mustServe = true
    if (this.#isServing) return
    this.#isServing = true
    while (this.#mustServe) {
      // Closing a session to make room may free another slot.
      this.#mustServe = false
      for (const waiting of this.#queue) {
        const slot = this.#slotFor(waiting)
        if (slot !== 'none') waiting.serve(slot)
      }
    }
    this.#isServing = false
  }

  #slotFor({ target, fresh }: QueuedSession): PooledSession | null | 'none' {
    const host = this.#hostOf(target.name)
    const busy = host.open - host.idle.length
    if (busy >= this.#allowed(target.name)) return 'none'
    const pooled = fresh ? undefined : host.idle.findLast((each) => suits(each, target))
    if (pooled !== undefined) {
      this.#takeIdle(host, pooled)
      return pooled
    }
    const other = host.idle[0]
    if (host.open >= this.#allowed(target.name) && other !== undefined) this.#closeIdle(other)
    else if (this.#open >= this.#options.limits.connections) this.#closeAnyIdle()
    // The slot of a closed idle session is free only after the reply to QUIT.
    if (host.open >= this.#allowed(target.name) || this.#open >= this.#options.limits.connections) return 'none'
    host.open += 1
    this.#open += 1
    return null
  }

  async #openAny(target: PoolTarget, signal: AbortSignal): Promise<Session> {
    const { addresses: addressesOf, ...rest } = target
    const addresses = await unlessAborted(addressesOf(), signal, () => stopped(target.name))
    let last = new SessionError({
      stage: 'connect',
      reply: null,
      host: target.name,
      message: 'The mail server has no address.',
    })
    for (const address of addresses) {
      try {
        return await openSession({ ...rest, address }, this.#options.means, signal)
      } catch (error) {
        if (!(error instanceof SessionError) || signal.aborted) throw error
        last = error
      }
    }
    throw last
  }

  #borrow(pooled: PooledSession): BorrowedSession {
    const begunAt = this.#options.clock.now()
    const { target, session } = pooled
    return {
      session,
      isReused: pooled.messages > 0,
      release: ({ isReusable, congested }) => {
        pooled.messages += 1
        countOne(this.#hostOf(target.name).throughput, this.#options.clock.now())
        if (congested) this.#slow(target.name, begunAt)
        if (isReusable && session.connection.error === null && this.#mayKeep(pooled)) this.#keep(pooled)
        else this.#leave(pooled, isReusable)
        this.#serve()
      },
    }
  }

  #mayKeep({ messages, target }: PooledSession): boolean {
    const { limits } = this.#options
    const { open } = this.#hostOf(target.name)
    return !this.#isClosed && messages < limits.messagesPerConnection && open <= this.#allowed(target.name)
  }

  #keep(pooled: PooledSession): void {
    const { startTimer } = this.#options
    pooled.stopTimer = startTimer(() => this.#closeIdle(pooled), idleTimeoutMs)
    // An unsolicited reply means that the server ends the session.
    pooled.session.connection.onUnexpected(() => this.#closeIdle(pooled))
    this.#hostOf(pooled.target.name).idle.push(pooled)
  }

  #takeIdle(host: Host, pooled: PooledSession): void {
    pooled.stopTimer?.()
    pooled.session.connection.onUnexpected(null)
    host.idle.splice(host.idle.indexOf(pooled), 1)
  }

  /** Ends an idle session. */
  #closeIdle(pooled: PooledSession): void {
    this.#takeIdle(this.#hostOf(pooled.target.name), pooled)
    this.#leave(pooled, true)
  }

  #closeAnyIdle(): void {
    for (const { idle } of this.#hosts.values()) {
      const [first] = idle
      if (first === undefined) continue
      this.#closeIdle(first)
      return
    }
  }

  /** Ends a session. Its slot is free when the connection has closed. */
  #leave({ session, target }: PooledSession, politely: boolean): void {
    this.#hostOf(target.name).working -= 1
    if (!politely) session.connection.fail(brokenOff())
    if (session.connection.error !== null) {
      this.#freeSlot(target.name)
      return
    }
    const closed = session.connection.quit(quitTimeoutMs).then(() => {
      this.#closing.delete(closed)
      this.#freeSlot(target.name)
    })
    this.#closing.add(closed)
  }

  #freeSlot(name: string): void {
    const host = this.#hostOf(name)
    host.open -= 1
    this.#open -= 1
    this.#forget(name)
    this.#serve()
  }

  /** Puts a host without another connection into back-off, and rejects the callers that wait for it. */
  #backOff(target: PoolTarget, error: SessionError): void {
    const host = this.#hostOf(target.name)
    const times = (host.rest?.times ?? 0) + 1
    const restMs = target.backoffMsAfter(error, times)
    if (restMs === 0 || host.open > 1) return
    host.rest = { error, until: new Date(this.#options.clock.now().getTime() + restMs), times }
    for (const waiting of this.#queue) {
      if (waiting.target.name === target.name) waiting.refuse(error)
    }
  }

  #backoffOf(name: string): Host['rest'] {
    const rest = this.#hosts.get(name)?.rest ?? null
    return rest !== null && this.#options.clock.now() < rest.until ? rest : null
  }

  /** Forgets a host without connections and waiting callers, unless it is slowed down or in back-off. */
  #forget(name: string): void {
    const host = this.#hosts.get(name)
    if (host === undefined || host.open > 0 || host.waiting > 0) return
    const isUsual = !this.#isSlowed(name) && this.#backoffOf(name) === null
    if (isUsual || this.#hosts.size > maxRemembered) this.#hosts.delete(name)
  }

  /** Returns how many connections a host may have now. */
  #allowed(name: string): number {
    const { limits, clock } = this.#options
    const host = this.#hosts.get(name)
    // One connection probes whether the host is back.
    if (host?.isAway) return 1
    return allowedConnections(host?.pace ?? null, limits.connectionsPerHost, clock.now())
  }

  #isSlowed(name: string): boolean {
    return this.#allowed(name) < this.#options.limits.connectionsPerHost
  }

  #slow(name: string, begunAt: Date): void {
    const host = this.#hostOf(name)
    const max = this.#options.limits.connectionsPerHost
    host.pace = slowedPace(host.pace, { max, begunAt, now: this.#options.clock.now() })
  }

  #hostOf(name: string): Host {
    const known = this.#hosts.get(name)
    if (known !== undefined) return known
    const host: Host = {
      open: 0,
      working: 0,
      waiting: 0,
      idle: [],
      pace: null,
      throughput: { second: 0, count: 0, before: 0 },
      isAway: false,
      rest: null,
    }
    this.#hosts.set(name, host)
    return host
  }
}

/** Returns whether an error may concern one connection only: a network error, or a temporary refusal up to EHLO. */
function isOfConnection({ stage, reply, isPermanent }: SessionError): boolean {
  if (isPermanent || (stage !== 'connect' && stage !== 'greeting' && stage !== 'ehlo')) return false
  return reply === null || reply.code < 500
}

/** Returns whether an idle session may serve a target: it has the same port, and is as secure as required. */
function suits({ session, target }: PooledSession, wanted: PoolTarget): boolean {
  return target.port === wanted.port && (wanted.tls === 'opportunistic' || session.connection.isVerified)
}

function stopped(host: string): SessionError {
  const cause = brokenOff()
  return new SessionError({ stage: 'connect', reply: null, host, message: cause.message }, { cause })
}
