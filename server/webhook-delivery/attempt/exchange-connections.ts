import { type LookupFunction, Socket } from 'node:net'
import { getCACertificates } from 'node:tls'
import { buildConnector, Client, type Dispatcher } from 'undici'
import { type AddressPolicy, assertTargetAllowed } from './address-guard.ts'
import { AnswerBeginning, watchReads } from './response-start.ts'

export type ConnectionsOptions = {
  policy: AddressPolicy
  /** Resolves and judges names. */
  lookup: LookupFunction
  /** Idle connections kept to one origin. */
  maxIdlePerOrigin: number
  /** Idle connections kept over all origins; beyond that, those idle for longest go. */
  maxIdle: number
  /** Certificates trusted beside the usual authorities, PEM. */
  ca?: string
}

/** How long one is kept idle, unless the endpoint says less. Most servers close theirs after 5 s and more. */
const maxIdleMs = 4_000
/** How long one is used at all: a name that moves to another address is followed after that. */
const maxAgeMs = 60_000
/** How long one address of several is tried before the next. Node's own 250 ms is less than a far round trip. */
const addressAttemptMs = 1_000
/** The headers of an answer beyond which it is not read. Bytes. */
const maxHeaderBytes = 16 * 1024

/**
 * The connections to all endpoints. One carries one exchange at a time, and an exchange never waits
 * for another's connection: how many there are is up to the caller.
 *
 * undici's own pool would not tell whether an exchange got a new connection or one that was used
 * before, nor give up one that is still being opened.
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

  /** One that is idle, or else a new one. */
  take(origin: string): Connection {
    const kept = this.#idleByOrigin.get(origin)?.at(-1)
    if (kept === undefined) return this.open(origin)
    this.#forget(kept)
    return kept
  }

  /** A new one; it connects with the first exchange. */
  open(origin: string): Connection {
    const connection = new Connection(origin, (target, callback) => this.#open(target, callback))
    this.#all.add(connection)
    connection.onDisconnect(() => {
      if (this.#idle.has(connection)) void this.drop(connection)
    })
    return connection
  }

  /** Takes one back after a complete answer, for the next exchange. */
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

  /** Closes one at once, also while it is being opened. */
  drop(connection: Connection): Promise<void> {
    this.#forget(connection)
    this.#all.delete(connection)
    return connection.destroy()
  }

  /** Drops all; exchanges under way fail as broken off. */
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
    // The connector answers its socket, though its type does not say so.
    const socket: unknown = this.#connect(target, callback)
    return socket instanceof Socket ? socket : undefined
  }
}

type OpenSocket = (target: buildConnector.Options, callback: buildConnector.Callback) => Socket | undefined

/** One connection to an origin, open or about to be. */
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

  /** Starts an exchange. What becomes of it, `handler` is told. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(request, handler)
  }

  /** A request is about to be sent: what comes next is its answer. */
  expectAnswer(): void {
    this.#beginning.expect()
  }

  /** How the answer begins; empty before it does. */
  get answerBeginning(): Buffer {
    return this.#beginning.first
  }

  /** Notes a complete answer. */
  noteAnswer(): void {
    this.#answers += 1
    this.#beginning.forget()
  }

  /** Whether it carried an answer before. */
  get wasUsed(): boolean {
    return this.#answers > 0
  }

  /** What came from the endpoint so far, without the bytes of TLS itself. */
  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0
  }

  /** Whether it broke, rather than was closed in order. */
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
    // The client would wait for a socket that is still connecting.
    this.#socket?.destroy()
    await closed
  }
}
