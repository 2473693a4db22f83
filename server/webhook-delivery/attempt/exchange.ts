import { Resolver } from 'node:dns/promises'
import { addAbortListener } from 'node:events'
import type { Dispatcher } from 'undici'
import type { Clock } from '../../lib/clock.ts'
import { type StartTimer, startSystemTimer } from '../../lib/timer.ts'
import { type Resolve, resolveWith, resolveWithSystem } from '../../network/name-resolution.ts'
import { type AddressPolicy, guardedLookup } from './address-guard.ts'
import { Connections } from './exchange-connections.ts'
import { brokenOff, type FailureReason, invalidUrl, type Stage, timedOut } from './exchange-failure.ts'
import { HttpResponse, type ResponseEnd } from './exchange-response.ts'
import { parseRetryAfter } from './retry-after.ts'

/** One HTTP exchange with a customer's endpoint. */
export type ExchangeRequest = {
  url: string
  headers: Record<string, string>
  /** Sent byte for byte. */
  body: string
}

/** What came of an answer: of one that broke off, its beginning. */
export type LoggedAnswer = {
  status: number
  /** The first 4 KiB of the body as text. */
  body: string
}

type Made = {
  startedAt: Date
  durationMs: number
  /**
   * Whether the request was posted twice: the endpoint closed a kept connection as the request was on
   * its way, so that it was posted again on a new one. The endpoint may have taken both.
   */
  reposted: boolean
}

export type ExchangeOutcome = Made &
  (
    | ({
        kind: 'answered'
        /** What `Retry-After` asks for, in seconds from the answer; null without a usable one. */
        retryAfterSeconds: number | null
      } & LoggedAnswer)
    | {
        kind: 'failed'
        stage: Stage
        reason: FailureReason
        /** A sentence its reader, the customer, can act on. No internal detail. */
        message: string
        /** Null: no status came. */
        partialAnswer: LoggedAnswer | null
      }
  )

/** What an attempt shows of the answer; null when no status came. */
export function loggedAnswer(outcome: ExchangeOutcome): LoggedAnswer | null {
  return outcome.kind === 'answered' ? { status: outcome.status, body: outcome.body } : outcome.partialAnswer
}

export type Exchange = {
  /** Every failure is an outcome, also a `url` that is none. Aborting `signal` gives up, as `connection-lost`. */
  send(request: ExchangeRequest, signal?: AbortSignal): Promise<ExchangeOutcome>
  /** Breaks off what is under way. */
  close(): Promise<void>
}

export type ExchangeOptions = {
  policy: AddressPolicy
  clock: Clock
  /** For the whole exchange: resolving, connecting, sending and the complete answer. Milliseconds. Default 30,000. */
  timeoutMs?: number
  /** Idle connections kept open to one origin; an exchange never waits for one. Default 128. */
  connectionsPerOrigin?: number
  /** Idle connections kept open in all. Default 1,024. */
  connectionsInAll?: number
  /** How names are resolved. Default: as `resolverOf` says. */
  resolve?: Resolve
  /** Certificates trusted beside the usual authorities, PEM. Default: none. */
  ca?: string
  /** Handed in, so that a test can let 30 seconds pass. */
  startTimer?: StartTimer
}

/** By the name servers; where private networks are allowed as the system does, which knows their names. */
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
 * Posts to endpoints nobody can trust. Redirects are answers like any other; at most 64 KiB of a body
 * are read, after which the connection is dropped; connections are kept open between exchanges.
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
      // Compressed answers are understood, but not asked for.
      headers: { 'accept-encoding': 'identity', ...headers },
      // A text undici would encode by itself, in ten times as long.
      body: Buffer.from(body),
    }
    return new Promise((resolve) => {
      const stopTimer = startTimer(() => answer.giveUp(timedOut(timeoutMs, answer.stage)), timeoutMs)
      const breakOff = () => answer.giveUp(brokenOff)
      const listening = signal === undefined ? undefined : addAbortListener(signal, breakOff)
      let reposted = false
      const finish = (end: ResponseEnd) => {
        stopTimer()
        listening?.[Symbol.dispose]()
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
      const startedAt = clock.now()
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
