import { type LookupFunction, Socket } from 'node:net'
import { getCACertificates } from 'node:tls'
import { buildConnector, Client, type Dispatcher } from 'undici'
import { type AddressPolicy, assertTargetAllowed } from './address-guard.ts'
import { AnswerBeginning, watchReads } from './response-start.ts'

export type ConnectionsOptions = {
  policy: AddressPolicy
  /** Resolves host names and rejects forbidden addresses. */
  lookup: LookupFunction
  /** Maximum number of idle connections kept for one origin. */
  maxIdlePerOrigin: number
  /** Maximum number of idle connections kept over all origins. Beyond it, the longest idle are closed. */
  maxIdle: number
  /** Certificate authorities trusted in addition to the default ones, PEM. */
  ca?: string
}

/**
 * How long a connection is kept idle, unless the endpoint asks for less. Milliseconds. Most servers close theirs after
 * 5 s or more.
 */
const maxIdleMs = 4_000
/** How long a connection is used at all, so that a changed DNS record takes effect. Milliseconds. */
const maxAgeMs = 60_000
/**
 * How long one of several addresses is tried before the next. Milliseconds. Node's default of 250 ms is less than a
 * long-distance round trip.
 */
const addressAttemptMs = 1_000
/** Maximum size of the headers of a response. Bytes. */
const maxHeaderBytes = 16 * 1024

/**
 * The connections to all endpoints. A connection carries one exchange at a time, and an exchange never waits for a
 * connection: the caller limits how many there are.
 *
 * undici's own pool does not report whether an exchange got a new connection or a used one, and cannot drop a
 * connection that is still being opened.
 */
export class Connections {
  readonly #connect: buildConnector.connector
  readonly #policy: AddressPolicy
  readonly #maxIdlePerOrigin: number
  readonly #maxIdle: number
  /** The longest idle first. */
  readonly #idle = new Set<Connection>()
  readonly #idleByOrigin = new Map<string, Connection[]>()
  readonly #all = new Set<Connection>()

  constructor({ policy, lookup, maxIdlePerOrigin, maxIdle, ca }: ConnectionsOptions) {
    this.#policy = policy
    this.#maxIdlePerOrigin = maxIdlePerOrigin
    this.#maxIdle = maxIdle
    this.#connect = buildConnector({
      allowH2: false,
      // The timer of the exchange covers connecting too.
      timeout: 0,
      lookup,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: addressAttemptMs,
      ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
    })
  }

  /** Returns an idle connection, or a new one if there is none. */
  take(origin: string): Connection {
    const kept = this.#idleByOrigin.get(origin)?.at(-1)
    if (kept === undefined) return this.open(origin)
    this.#forget(kept)
    return kept
  }

  /** Returns a new connection. It connects with its first exchange. */
  open(origin: string): Connection {
    const connection = new Connection(origin, (target, callback) => this.#open(target, callback))
    this.#all.add(connection)
    connection.onDisconnect(() => {
      if (this.#idle.has(connection)) void this.drop(connection)
    })
    return connection
  }

  /** Keeps a connection for the next exchange, after a complete response. */
  keep(connection: Connection): void {
    const siblings = this.#idleByOrigin.get(connection.origin) ?? []
    if (connection.ageMs() > maxAgeMs || siblings.length >= this.#maxIdlePerOrigin || !this.#all.has(connection)) {
      void this.drop(connection)
      return
    }
    siblings.push(connection)
    this.#idleByOrigin.set(connection.origin, siblings)
    this.#idle.add(connection)
    if (this.#idle.size <= this.#maxIdle) return
    const [longestIdle] = this.#idle
    if (longestIdle !== undefined) void this.drop(longestIdle)
  }

  /** Closes a connection at once, even if it is still being opened. */
  drop(connection: Connection): Promise<void> {
    this.#forget(connection)
    this.#all.delete(connection)
    return connection.destroy()
  }

  /** Drops all connections. Exchanges under way fail as aborted. */
  async close(): Promise<void> {
    await Promise.all([...this.#all].map((connection) => this.drop(connection)))
  }

  #forget(connection: Connection): void {
    if (!this.#idle.delete(connection)) return
    const siblings = this.#idleByOrigin.get(connection.origin) ?? []
    siblings.splice(siblings.lastIndexOf(connection), 1)
    if (siblings.length === 0) this.#idleByOrigin.delete(connection.origin)
  }

  #open(target: buildConnector.Options, callback: buildConnector.Callback): Socket | undefined {
    try {
      assertTargetAllowed(target, this.#policy)
    } catch (error) {
      callback(error instanceof Error ? error : new Error(String(error)), null)
      return undefined
    }
    // The connector returns its socket, though its type does not say so.
    const socket: unknown = this.#connect(target, callback)
    return socket instanceof Socket ? socket : undefined
  }
}

type OpenSocket = (target: buildConnector.Options, callback: buildConnector.Callback) => Socket | undefined

/** One connection to an origin, open or to be opened. */
export class Connection {
  readonly origin: string
  readonly #client: Client
  readonly #beginning = new AnswerBeginning()
  #socket: Socket | undefined
  #openedAt = 0
  #answers = 0

  constructor(origin: string, openSocket: OpenSocket) {
    this.origin = origin
    this.#client = new Client(origin, {
      pipelining: 1,
      keepAliveTimeout: maxIdleMs,
      keepAliveMaxTimeout: maxIdleMs,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (target, callback) => {
        this.#openedAt = performance.now()
        this.#answers = 0
        this.#socket = openSocket(target, (...opened) => {
          if (opened[0] === null) watchReads(opened[1], this.#beginning)
          callback(...opened)
        })
      },
    })
  }

  /** Starts an exchange. `handler` receives its events. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(request, handler)
  }

  /** Call it when a request is about to be sent: the next bytes are its response. */
  expectAnswer(): void {
    this.#beginning.expect()
  }

  /** The first bytes of the response. Empty: none have arrived. */
  get answerBeginning(): Buffer {
    return this.#beginning.first
  }

  /** Records a complete response. */
  noteAnswer(): void {
    this.#answers += 1
    this.#beginning.forget()
  }

  /** True when the connection has carried a response before. */
  get wasUsed(): boolean {
    return this.#answers > 0
  }

  /** Bytes received from the endpoint so far, without the overhead of TLS. */
  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0
  }

  /** True when the connection broke, rather than being closed normally. */
  get isBroken(): boolean {
    return this.#socket?.errored != null
  }

  ageMs(): number {
    return performance.now() - this.#openedAt
  }

  onDisconnect(callback: () => void): void {
    this.#client.on('disconnect', callback)
  }

  async destroy(): Promise<void> {
    const closed = this.#client.destroy()
    // The client would otherwise wait for a socket that is still connecting.
    this.#socket?.destroy()
    await closed
  }
}
