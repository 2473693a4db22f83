import type { Dispatcher } from 'undici'
import { BodyReader } from './exchange-body.ts'
import type { Connection, Connections } from './exchange-connections.ts'
import {
  connectionLost,
  type ExchangeFailure,
  failureOf,
  type Stage,
  tooManyInterimAnswers,
} from './exchange-failure.ts'
import { statusOf } from './response-start.ts'

/** The result of one request on one connection. */
export type ResponseEnd =
  | { kind: 'answered'; status: number; retryAfter: string | undefined; body: BodyReader }
  | {
      kind: 'failed'
      stage: Stage
      failure: ExchangeFailure
      /**
       * The part of the response that arrived: its status, and its body unless the headers are invalid. Null: nothing.
       */
      partial: { status: number; body: BodyReader | null } | null
      /**
       * True when the endpoint had closed the kept connection before the request arrived. That is no failure of the
       * endpoint.
       */
      wasStale: boolean
    }

/**
 * If the endpoint closed the connection before the request arrived, that shows within a round trip. A later close is
 * the endpoint's reaction to the request. Milliseconds.
 */
const crossingMs = 1_000

/** Follows one request on one connection through undici, ends it exactly once, and keeps or drops the connection. */
export class HttpResponse implements Dispatcher.DispatchHandler {
  readonly #connections: Connections
  readonly #connection: Connection
  readonly #finish: (end: ResponseEnd) => void
  #stage: Stage = 'before-sending'
  #ended = false
  #wasUsed = false
  #sentAt = 0
  #bytesBefore = 0
  #status = 0
  #retryAfter: string | undefined
  #body: BodyReader | undefined

  constructor(connections: Connections, connection: Connection, finish: (end: ResponseEnd) => void) {
    this.#connections = connections
    this.#connection = connection
    this.#finish = finish
  }

  get stage(): Stage {
    return this.#stage
  }

  /** Sends the request. Call it once. */
  ask(request: Dispatcher.DispatchOptions): void {
    this.#connection.dispatch(request, this)
  }

  /** Ends the exchange as failed, unless it has ended already. */
  giveUp(failure: ExchangeFailure): void {
    this.#fail(failure, false)
  }

  onRequestStart(): void {
    this.#stage = 'while-sending'
    this.#wasUsed = this.#connection.wasUsed
    this.#connection.expectAnswer()
    this.#bytesBefore = this.#connection.bytesRead
    this.#sentAt = performance.now()
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // Interim responses are removed before the parser, up to a limit.
    if (status < 200) {
      this.giveUp(tooManyInterimAnswers)
      return
    }
    this.#stage = 'after-sending'
    this.#status = status
    this.#retryAfter = firstOf(headers['retry-after'])
    this.#body = new BodyReader(firstOf(headers['content-encoding']), () => this.#succeed(false))
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#ended) this.#body?.add(chunk)
  }

  onResponseEnd(): void {
    // A body without a length ends with the connection. undici treats a reset like a normal close; it is none.
    if (this.#connection.isBroken) this.#fail(connectionLost(this.#stage), false)
    else this.#succeed(true)
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (this.#ended) return
    const failure = failureOf(error, { stage: this.#stage, beginning: this.#connection.answerBeginning })
    this.#fail(failure, failure.reason === 'connection-lost' && this.#crossedAClose())
  }

  #crossedAClose(): boolean {
    return (
      this.#wasUsed && this.#connection.bytesRead === this.#bytesBefore && performance.now() - this.#sentAt < crossingMs
    )
  }

  /** @param isComplete True when the response was read to its end, so that the connection can be reused. */
  #succeed(isComplete: boolean): void {
    if (this.#ended || this.#body === undefined) return
    this.#ended = true
    if (isComplete) {
      this.#connection.noteAnswer()
      this.#connections.keep(this.#connection)
    } else {
      void this.#connections.drop(this.#connection)
    }
    this.#finish({ kind: 'answered', status: this.#status, retryAfter: this.#retryAfter, body: this.#body })
  }

  #fail(failure: ExchangeFailure, wasStale: boolean): void {
    if (this.#ended) return
    this.#ended = true
    const partial = this.#partialAnswer()
    void this.#connections.drop(this.#connection)
    this.#finish({ kind: 'failed', stage: this.#stage, failure, partial, wasStale })
  }

  #partialAnswer(): { status: number; body: BodyReader | null } | null {
    const status = this.#body === undefined ? statusOf(this.#connection.answerBeginning) : this.#status
    return status === null ? null : { status, body: this.#body ?? null }
  }
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}
