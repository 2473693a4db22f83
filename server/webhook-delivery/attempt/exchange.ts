import { Resolver } from 'node:dns/promises'
import type { Dispatcher } from 'undici'
import type { Clock } from '../../lib/clock.ts'
import { type StartTimer, startSystemTimer } from '../../lib/timer.ts'
import { whenAborted } from '../../lib/when-aborted.ts'
import { type Resolve, resolveWith, resolveWithSystem } from '../../network/name-resolution.ts'
import { type AddressPolicy, guardedLookup } from './address-guard.ts'
import { Connections } from './exchange-connections.ts'
import { brokenOff, type FailureReason, invalidUrl, type Stage, timedOut } from './exchange-failure.ts'
import { HttpResponse, type ResponseEnd } from './exchange-response.ts'
import { parseRetryAfter } from './retry-after.ts'

/** The request of one HTTP exchange with a customer's endpoint. */
export type ExchangeRequest = {
  url: string
  headers: Record<string, string>
  /** Sent byte for byte. */
  body: string
  /** When the attempt began, as its outcome tells it. Default: now. */
  startedAt?: Date
}

/** The part of a response that is stored, also if the response broke off. */
export type LoggedAnswer = {
  status: number
  /** The first 4 KiB of the body as text. */
  body: string
}

type Made = {
  startedAt: Date
  durationMs: number
  /**
   * True when the request was sent twice: the endpoint closed a kept connection while the request was on its way, so
   * the request was sent again on a new connection. The endpoint may have processed both.
   */
  reposted: boolean
}

export type ExchangeOutcome = Made &
  (
    | ({
        kind: 'answered'
        /** The delay that `Retry-After` asks for, in seconds from the response. Null: no valid header. */
        retryAfterSeconds: number | null
      } & LoggedAnswer)
    | {
        kind: 'failed'
        stage: Stage
        reason: FailureReason
        /** A sentence that the customer can act on. It contains no internal details. */
        message: string
        /** Null: no status arrived. */
        partialAnswer: LoggedAnswer | null
      }
  )

/** Returns the part of the response that an attempt stores. Null: no status arrived. */
export function loggedAnswer(outcome: ExchangeOutcome): LoggedAnswer | null {
  return outcome.kind === 'answered' ? { status: outcome.status, body: outcome.body } : outcome.partialAnswer
}

export type Exchange = {
  /**
   * Sends one request. Never rejects: every failure is an outcome, an invalid `url` too. Aborting `signal` ends the
   * exchange as `connection-lost`.
   */
  send(request: ExchangeRequest, signal?: AbortSignal): Promise<ExchangeOutcome>
  /** Aborts all exchanges under way. */
  close(): Promise<void>
}

export type ExchangeOptions = {
  policy: AddressPolicy
  clock: Clock
  /**
   * Time limit of the whole exchange: resolving, connecting, sending and reading the response. Milliseconds. Default
   * 30,000.
   */
  timeoutMs?: number | undefined
  /** Maximum number of idle connections kept for one origin. Exchanges never wait for a connection. Default 128. */
  connectionsPerOrigin?: number
  /** Maximum number of idle connections kept in all. Default 1,024. */
  connectionsInAll?: number
  /** Resolves host names. Default: see `resolverOf`. */
  resolve?: Resolve
  /** Certificate authorities trusted in addition to the default ones, PEM. Default: none. */
  ca?: string
  /** Starts the timer of the time limit. Tests replace it to skip 30 seconds. */
  startTimer?: StartTimer
}

/**
 * Returns a resolver that asks the name servers. If private networks are allowed, it uses the system's resolver, which
 * knows their names.
 */
export function resolverOf({ allowPrivateNetworks }: AddressPolicy): Resolve {
  return allowPrivateNetworks ? resolveWithSystem : resolveWith(new Resolver())
}

type PostEnd = { end: ResponseEnd; reposted: boolean }

const notSent: ResponseEnd = {
  kind: 'failed',
  stage: 'before-sending',
  failure: invalidUrl,
  partial: null,
  wasStale: false,
}

/**
 * Creates an exchange with untrusted endpoints. Redirects are ordinary responses. At most 64 KiB of a response body are
 * read; then the connection is dropped. Connections are kept open between exchanges.
 */
export function createExchange(options: ExchangeOptions): Exchange {
  const { policy, clock, timeoutMs = 30_000, startTimer = startSystemTimer } = options
  const resolve = options.resolve ?? resolverOf(policy)
  const connections = new Connections({
    policy,
    lookup: guardedLookup(policy, resolve),
    maxIdlePerOrigin: options.connectionsPerOrigin ?? 128,
    maxIdle: options.connectionsInAll ?? 1024,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  })

  function post({ url, headers, body }: ExchangeRequest, signal: AbortSignal | undefined): Promise<PostEnd> {
    const target = URL.parse(url)
    if (target === null || !isHttp(target)) {
      return Promise.resolve({ end: notSent, reposted: false })
    }
    const { origin, pathname, search } = target
    const request: Dispatcher.DispatchOptions = {
      path: pathname + search,
      method: 'POST',
      // Compressed responses are decoded, but not asked for.
      headers: { 'accept-encoding': 'identity', ...headers },
      // undici would encode a string by itself, in ten times the time.
      body: Buffer.from(body),
    }
    return new Promise((resolve) => {
      const stopTimer = startTimer(() => answer.giveUp(timedOut(timeoutMs, answer.stage)), timeoutMs)
      const breakOff = () => answer.giveUp(brokenOff)
      const stopListening = signal === undefined ? undefined : whenAborted(signal, breakOff)
      let reposted = false
      const finish = (end: ResponseEnd) => {
        stopTimer()
        stopListening?.()
        resolve({ end, reposted })
      }
      let answer = new HttpResponse(connections, connections.take(origin), (end) => {
        if (end.kind === 'answered' || !end.wasStale) {
          finish(end)
          return
        }
        reposted = true
        answer = new HttpResponse(connections, connections.open(origin), finish)
        answer.ask(request)
      })
      answer.ask(request)
      if (signal?.aborted) breakOff()
    })
  }

  return {
    async send(request, signal) {
      const startedAt = request.startedAt ?? clock.now()
      const start = performance.now()
      const { end, reposted } = await post(request, signal)
      const made = { startedAt, durationMs: performance.now() - start, reposted }
      if (end.kind === 'failed') {
        const { stage, failure, partial } = end
        const partialAnswer = partial && { status: partial.status, body: (await partial.body?.text()) ?? '' }
        return { kind: 'failed', ...made, stage, ...failure, partialAnswer }
      }
      return {
        kind: 'answered',
        ...made,
        status: end.status,
        body: await end.body.text(),
        retryAfterSeconds: parseRetryAfter(end.retryAfter, clock.now()),
      }
    },
    close: () => connections.close(),
  }
}

function isHttp({ protocol }: URL): boolean {
  return protocol === 'http:' || protocol === 'https:'
}
