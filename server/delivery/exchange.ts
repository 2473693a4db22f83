import { Agent, buildConnector, type Dispatcher } from 'undici'
import type { Clock } from '../clock.ts'
import { type AddressPolicy, assertLiteralAllowed, guardedLookup, type Resolve } from './address-guard.ts'
import { bodyText, keptBodyBytes, maxBodyBytes } from './exchange-body.ts'
import { type Failure, failureOf, timedOut } from './exchange-failure.ts'
import { parseRetryAfter } from './retry-after.ts'

/** One HTTP exchange with a customer's endpoint. */
export type ExchangeRequest = {
  url: string
  headers: Record<string, string>
  /** Sent byte for byte. */
  body: string
}

export type ExchangeOutcome =
  | {
      kind: 'answered'
      startedAt: Date
      durationMs: number
      status: number
      /** The first 4 KiB of the body as text. */
      body: string
      /** What `Retry-After` asks for, in seconds from the answer; null without a usable one. */
      retryAfterSeconds: number | null
    }
  | {
      kind: 'failed'
      startedAt: Date
      durationMs: number
      /** How far it came: what was sent may have been taken. */
      stage: 'before-sending' | 'while-sending' | 'after-sending'
      reason: FailureReason
      /** A sentence its reader, the customer, can act on. No internal detail. */
      message: string
    }

export type FailureReason =
  | 'address-not-allowed'
  | 'name-not-found'
  | 'connection-refused'
  | 'connection-lost'
  | 'timed-out'
  | 'tls'
  | 'invalid-answer'
  | 'unreachable'

export type Exchange = {
  /** Never throws: every failure is an outcome. Aborting `signal` gives up, as `connection-lost`. */
  send(request: ExchangeRequest, signal?: AbortSignal): Promise<ExchangeOutcome>
  close(): Promise<void>
}

/** Where timers come from. Handed in, so that a test can let 30 seconds pass. */
export type Timers = {
  setTimeout(callback: () => void, ms: number): unknown
  clearTimeout(timer: unknown): void
}

const systemTimers: Timers = {
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
}

export type ExchangeOptions = {
  policy: AddressPolicy
  clock: Clock
  /** For the whole exchange: connecting, sending and the complete answer. Milliseconds. Default 30,000. */
  timeoutMs?: number
  /** Connections to one origin at most. Default 128. */
  connectionsPerOrigin?: number
  /** How names are resolved. Default: as the system does. */
  resolve?: Resolve
  /** Certificates trusted beside the public authorities, PEM. Default: none. */
  ca?: string
  timers?: Timers
}

/** The headers of an answer beyond which it is not read. Bytes. */
const maxHeaderBytes = 16 * 1024

/**
 * Posts to endpoints nobody can trust. Redirects are answers like any other; at most 64 KiB of a body
 * are read, after which the connection is dropped; connections are kept open between exchanges.
 */
export function createExchange(options: ExchangeOptions): Exchange {
  const { policy, clock, timeoutMs = 30_000, timers = systemTimers } = options
  const connector = buildConnector({
    allowH2: false,
    // The timer of the exchange covers connecting too.
    timeout: 0,
    lookup: guardedLookup(policy, options.resolve),
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  })
  const agent = new Agent({
    connections: options.connectionsPerOrigin ?? 128,
    pipelining: 1,
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect(target, callback) {
      try {
        assertLiteralAllowed(target.hostname, policy)
      } catch (error) {
        callback(error as Error, null)
        return
      }
      connector(target, callback)
    },
  })

  return {
    async send(request, signal) {
      const outcome = await once(request, signal)
      // The endpoint closed a connection that was kept open just as it was used again: not its failure.
      return outcome === 'stale-connection' ? ((await once(request, signal, true)) as ExchangeOutcome) : outcome
    },
    close: () => agent.destroy(),
  }

  function once(
    request: ExchangeRequest,
    signal: AbortSignal | undefined,
    again = false,
  ): Promise<ExchangeOutcome | 'stale-connection'> {
    const startedAt = clock.now()
    const start = performance.now()
    return new Promise((resolve) => {
      const handler = new AnswerHandler(finish)
      const timer = timers.setTimeout(() => handler.giveUp(timedOut(timeoutMs)), timeoutMs)
      const onAbort = () =>
        handler.giveUp({ reason: 'connection-lost', message: 'The exchange was broken off on our side.' })

      function finish(end: AnswerEnd): void {
        timers.clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        const durationMs = performance.now() - start
        if ('stale' in end && end.stale && !again) resolve('stale-connection')
        else if (end.failure !== null) {
          resolve({ kind: 'failed', startedAt, durationMs, stage: end.stage, ...end.failure })
        } else {
          const { status, headers } = end
          const retryAfterSeconds = parseRetryAfter(headers['retry-after'], clock.now())
          bodyText(Buffer.concat(end.body), headers['content-encoding']).then((body) =>
            resolve({ kind: 'answered', startedAt, durationMs, status, body, retryAfterSeconds }),
          )
        }
      }

      if (signal?.aborted) onAbort()
      else {
        signal?.addEventListener('abort', onAbort)
        post(request, handler)
      }
    })
  }

  function post({ url, headers, body }: ExchangeRequest, handler: AnswerHandler): void {
    try {
      const { origin, pathname, search } = new URL(url)
      agent.dispatch({ origin, path: pathname + search, method: 'POST', headers, body }, handler)
    } catch (error) {
      handler.giveUp(failureOf(error))
    }
  }
}

type Stage = Extract<ExchangeOutcome, { kind: 'failed' }>['stage']

/** How an exchange ended: with an answer, or with a failure at some stage. */
type AnswerEnd =
  | { failure: null; status: number; headers: Record<string, string>; body: Buffer[] }
  | { failure: Failure; stage: Stage; stale: boolean }

/** Follows one exchange through undici, and ends it exactly once. */
class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #finish: (end: AnswerEnd) => void
  #controller: Dispatcher.DispatchController | undefined
  #stage: Stage = 'before-sending'
  #status = 0
  #headers: Record<string, string> = {}
  #body: Buffer[] = []
  #received = 0
  #ended = false

  constructor(finish: (end: AnswerEnd) => void) {
    this.#finish = finish
  }

  /** Ends the exchange as failed, unless it has ended. */
  giveUp(failure: Failure, stale = false): void {
    this.#end({ failure, stage: this.#stage, stale })
    this.#controller?.abort(new Error(failure.message))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // Given up while it waited for a connection.
    if (this.#ended) controller.abort(new Error('given up'))
    else this.#stage = 'while-sending'
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // An interim answer (RFC 9110 §15.2): the final one follows.
    if (status < 200) return
    this.#stage = 'after-sending'
    this.#status = status
    for (const name of ['retry-after', 'content-encoding']) {
      const value = headers[name]
      if (value !== undefined) this.#headers[name] = Array.isArray(value) ? (value[0] ?? '') : value
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const wanted = this.#headers['content-encoding'] === undefined ? keptBodyBytes + 1 : maxBodyBytes
    if (this.#received < wanted) this.#body.push(chunk.subarray(0, wanted - this.#received))
    this.#received += chunk.length
    if (this.#received < maxBodyBytes) return
    this.#answered()
    controller.abort(new Error('enough was read'))
  }

  onResponseEnd(): void {
    this.#answered()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.giveUp(failureOf(error), this.#stage === 'while-sending' && wasUsedBefore(error))
  }

  #answered(): void {
    this.#end({ failure: null, status: this.#status, headers: this.#headers, body: this.#body })
  }

  #end(end: AnswerEnd): void {
    if (this.#ended) return
    this.#ended = true
    this.#finish(end)
  }
}

/** Whether the connection that broke had carried an answer before. */
function wasUsedBefore(error: Error): boolean {
  return 'socket' in error && typeof error.socket === 'object' && bytesReadOf(error.socket) > 0
}

function bytesReadOf(socket: object | null): number {
  return socket !== null && 'bytesRead' in socket && typeof socket.bytesRead === 'number' ? socket.bytesRead : 0
}
