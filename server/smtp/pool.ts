import type { Clock } from '../lib/clock.ts'
import type { StartTimer } from '../lib/timer.ts'
import { unlessAborted } from '../lib/unless-aborted.ts'
import { type Lane, lanes } from '../shared/lanes.ts'
import { brokenOff } from './connection.ts'
import { mostInBulk } from './host-connection-limit.ts'
import { type Host, type PooledSession, PoolHosts, type PoolTarget } from './pool-hosts.ts'
import { openSession, type Session, SessionError, type SessionMeans } from './session.ts'
import { countOne } from './throughput.ts'
import { quitTimeoutMs } from './time-limits.ts'

/** How long an idle connection is kept open. Milliseconds. */
const idleTimeoutMs = 10_000

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

/** A caller's requirements for a session. `fresh`: only a new session. */
type Use = { lane: Lane; fresh: boolean }

type QueuedSession = Use & {
  target: PoolTarget
  serve(pooled: PooledSession | null): void
  refuse(error: SessionError): void
}

/**
 * A pool of SMTP connections to all hosts. It limits connections in total and per host (fewer while a host asks for
 * less) and messages per connection, and closes idle connections. Callers wait for a free connection in FIFO order, those
 * of the lane `single` before those in bulk, which also leave some connections unused. Of a host that both wait for, bulk
 * gets every fourth connection.
 */
export class Pool {
  readonly #options: PoolOptions
  readonly #hosts: PoolHosts
  readonly #queues: Record<Lane, Set<QueuedSession>> = { single: new Set(), bulk: new Set() }
  readonly #closing = new Set<Promise<void>>()
  #open = 0
  /** Connections that conversations of the lane `bulk` use. */
  #inBulk = 0
  #isServing = false
  #mustServe = false
  #isClosed = false

  constructor(options: PoolOptions) {
    this.#options = options
    this.#hosts = new PoolHosts(options.limits.connectionsPerHost, options.clock)
  }

  /** Returns how many more conversations of a lane with a host may begin: see `PoolHosts`. */
  roomFor(name: string, lane: Lane): number {
    return this.#hosts.roomFor(name, lane)
  }

  /** Returns whether a host is in back-off after a failure. */
  isBackingOff(name: string): boolean {
    return this.#hosts.backoffOf(name) !== null
  }

  /**
   * Returns a session with the first address of the target that accepts one, once there is room. When the host refuses
   * another connection while others work, it waits until one of those is free. Throws SessionError with the error of the
   * last address, and at once while the host is in back-off. `signal` ends the wait.
   */
  async hold(target: PoolTarget, signal: AbortSignal, use: Use): Promise<BorrowedSession> {
    for (;;) {
      const held = await this.#tryHold(target, signal, use)
      if (held !== null) return held
    }
  }

  /** Waits for a session once. Null: the host refuses another connection but has others, so the caller waits again. */
  async #tryHold(target: PoolTarget, signal: AbortSignal, use: Use): Promise<BorrowedSession | null> {
    const pooled = await this.#waitForSlot(target, signal, use)
    if (pooled !== null) return this.#borrow(pooled, use.lane)
    const begunAt = this.#options.clock.now()
    try {
      const session = await this.#openAny(target, signal)
      const host = this.#hosts.of(target.name)
      host.isAway = false
      host.rest = null
      host.working += 1
      return this.#borrow({ session, target, messages: 0, stopTimer: null }, use.lane)
    } catch (error) {
      this.#endUse(target.name, use.lane)
      if (
        !signal.aborted &&
        !this.#isClosed &&
        error instanceof SessionError &&
        this.#hosts.isFull(target.name, error)
      ) {
        this.#freeSlot(target.name)
        return null
      }
      if (error instanceof SessionError && error.reply !== null) this.#hosts.slow(target.name, begunAt)
      else if (!signal.aborted) this.#hosts.of(target.name).isAway = true
      if (error instanceof SessionError && !signal.aborted) this.#backOff(target, error)
      this.#freeSlot(target.name)
      throw error
    }
  }

  /** Closes all idle sessions with QUIT. Waiting callers get an error that says that the service stopped. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const waiting of this.#waiting()) waiting.refuse(stopped(waiting.target.name))
    for (const host of this.#hosts.all()) {
      for (const pooled of [...host.idle]) this.#closeIdle(pooled)
    }
    await Promise.all(this.#closing)
  }

  /** Waits for a slot, and returns its idle session or, for a new connection, null. */
  #waitForSlot(target: PoolTarget, signal: AbortSignal, use: Use): Promise<PooledSession | null> {
    const { promise, resolve, reject } = Promise.withResolvers<PooledSession | null>()
    const host = this.#hosts.of(target.name)
    const abort = () => waiting.refuse(stopped(target.name))
    const leave = () => {
      signal.removeEventListener('abort', abort)
      this.#queues[use.lane].delete(waiting)
      host.waiting[use.lane] -= 1
    }
    const waiting: QueuedSession = {
      ...use,
      target,
      serve(pooled) {
        leave()
        resolve(pooled)
      },
      refuse: (error) => {
        leave()
        this.#hosts.forget(target.name)
        reject(error)
      },
    }
    host.waiting[use.lane] += 1
    this.#queues[use.lane].add(waiting)
    signal.addEventListener('abort', abort)
    const rest = this.#hosts.backoffOf(target.name)
    if (signal.aborted || this.#isClosed) abort()
    else if (rest !== null) waiting.refuse(rest.error)
    else this.#serve()
    return promise
  }

  *#waiting(): Iterable<QueuedSession> {
    for (const lane of lanes) yield* this.#queues[lane]
  }

  /** Gives free slots to the waiting callers, in their order. */
  #serve(): void {
    this.#mustServe = true
    if (this.#isServing) return
    this.#isServing = true
    while (this.#mustServe) {
      // Closing a session to make room may free another slot.
      this.#mustServe = false
      for (const waiting of this.#waiting()) {
        const slot = this.#slotFor(waiting)
        if (slot === 'none') continue
        this.#hosts.countTurn(waiting.target.name, waiting.lane)
        if (waiting.lane === 'bulk') this.#countInBulk(waiting.target.name, 1)
        waiting.serve(slot)
      }
    }
    this.#isServing = false
  }

  #countInBulk(name: string, change: 1 | -1): void {
    this.#inBulk += change
    this.#hosts.of(name).inBulk += change
  }

  /** Ends a use of a slot: the slot is idle or closes. */
  #endUse(name: string, lane: Lane): void {
    if (lane === 'bulk') this.#countInBulk(name, -1)
  }

  #mayUseInBulk(name: string): boolean {
    return this.#inBulk < mostInBulk(this.#options.limits.connections) && this.#hosts.mayUseInBulk(name)
  }

  #slotFor({ target, fresh, lane }: QueuedSession): PooledSession | null | 'none' {
    const mayUseInBulk = this.#mayUseInBulk(target.name)
    if (lane === 'bulk' && !mayUseInBulk) return 'none'
    if (lane === 'single' && mayUseInBulk && this.#hosts.isTurnOfBulk(target.name)) return 'none'
    const host = this.#hosts.of(target.name)
    const busy = host.open - host.idle.length
    if (busy >= this.#hosts.allowed(target.name)) return 'none'
    const pooled = fresh ? undefined : host.idle.findLast((each) => suits(each, target))
    if (pooled !== undefined) {
      this.#takeIdle(host, pooled)
      return pooled
    }
    const other = host.idle[0]
    if (host.open >= this.#hosts.allowed(target.name) && other !== undefined) this.#closeIdle(other)
    else if (this.#open >= this.#options.limits.connections) this.#closeAnyIdle()
    // The slot of a closed idle session is free only after the reply to QUIT.
    if (host.open >= this.#hosts.allowed(target.name) || this.#open >= this.#options.limits.connections) return 'none'
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

  #borrow(pooled: PooledSession, lane: Lane): BorrowedSession {
    const begunAt = this.#options.clock.now()
    const { target, session } = pooled
    return {
      session,
      isReused: pooled.messages > 0,
      release: ({ isReusable, congested }) => {
        pooled.messages += 1
        this.#endUse(target.name, lane)
        countOne(this.#hosts.of(target.name).throughput, this.#options.clock.now())
        if (congested) this.#hosts.slow(target.name, begunAt)
        if (isReusable && session.connection.error === null && this.#mayKeep(pooled)) this.#keep(pooled)
        else this.#leave(pooled, isReusable)
        this.#serve()
      },
    }
  }

  #mayKeep({ messages, target }: PooledSession): boolean {
    const { limits } = this.#options
    const { open } = this.#hosts.of(target.name)
    return !this.#isClosed && messages < limits.messagesPerConnection && open <= this.#hosts.allowed(target.name)
  }

  #keep(pooled: PooledSession): void {
    const { startTimer } = this.#options
    pooled.stopTimer = startTimer(() => this.#closeIdle(pooled), idleTimeoutMs)
    // An unsolicited reply means that the server ends the session.
    pooled.session.connection.onUnexpected(() => this.#closeIdle(pooled))
    this.#hosts.of(pooled.target.name).idle.push(pooled)
  }

  #takeIdle(host: Host, pooled: PooledSession): void {
    pooled.stopTimer?.()
    pooled.session.connection.onUnexpected(null)
    host.idle.splice(host.idle.indexOf(pooled), 1)
  }

  /** Ends an idle session. */
  #closeIdle(pooled: PooledSession): void {
    this.#takeIdle(this.#hosts.of(pooled.target.name), pooled)
    this.#leave(pooled, true)
  }

  #closeAnyIdle(): void {
    for (const { idle } of this.#hosts.all()) {
      const [first] = idle
      if (first === undefined) continue
      this.#closeIdle(first)
      return
    }
  }

  /** Ends a session. Its slot is free when the connection has closed. */
  #leave({ session, target }: PooledSession, politely: boolean): void {
    this.#hosts.of(target.name).working -= 1
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
    const host = this.#hosts.of(name)
    host.open -= 1
    this.#open -= 1
    this.#hosts.forget(name)
    this.#serve()
  }

  /** Puts a host without another connection into back-off, and rejects the callers that wait for it. */
  #backOff(target: PoolTarget, error: SessionError): void {
    if (!this.#hosts.backOff(target, error)) return
    for (const waiting of this.#waiting()) {
      if (waiting.target.name === target.name) waiting.refuse(error)
    }
  }
}

/** Returns whether an idle session may serve a target: it has the same port, and is as secure as required. */
function suits({ session, target }: PooledSession, wanted: PoolTarget): boolean {
  return target.port === wanted.port && (wanted.tls === 'opportunistic' || session.connection.isVerified)
}

function stopped(host: string): SessionError {
  const cause = brokenOff()
  return new SessionError({ stage: 'connect', reply: null, host, message: cause.message }, { cause })
}
