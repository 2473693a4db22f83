import { Resolver } from 'node:dns/promises'
import type { Dispatcher } from 'undici'
import type { Clock } from '../clock.ts'
import { type Resolve, resolveWith, resolveWithSystem } from '../network/name-resolution.ts'
import { type StartTimer, startSystemTimer } from '../timer.ts'
import { type AddressPolicy, guardedLookup } from './address-guard.ts'
import { Answer, type AnswerEnd } from './exchange-answer.ts'
import { Connections } from './exchange-connections.ts'
import { brokenOff, type FailureReason, invalidUrl, type Stage, timedOut } from './exchange-failure.ts'
import { parseRetryAfter } from './retry-after.ts'
import { whenAborted } from './when-aborted.ts'

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
      stage: Stage
      reason: FailureReason
      /** A sentence its reader, the customer, can act on. No internal detail. */
      message: string
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
  /**
   * How names are resolved. Default: by the name servers, and where private networks are allowed as the
   * system does, which knows their names.
   */
  resolve?: Resolve
  /** Certificates trusted beside the usual authorities, PEM. Default: none. */
  ca?: string
  /** Handed in, so that a test can let 30 seconds pass. */
  startTimer?: StartTimer
}

/**
 * Posts to endpoints nobody can trust. Redirects are answers like any other; at most 64 KiB of a body
 * are read, after which the connection is dropped; connections are kept open between exchanges.
 */
export function createExchange(options: ExchangeOptions): Exchange {
  const { policy, clock, timeoutMs = 30_000, startTimer = startSystemTimer } = options
  const resolve = options.resolve ?? (policy.allowPrivateNetworks ? resolveWithSystem : resolveWith(new Resolver()))
  const connections = new Connections({
    policy,
    lookup: guardedLookup(policy, resolve),
    maxIdlePerOrigin: options.connectionsPerOrigin ?? 128,
    maxIdle: options.connectionsInAll ?? 1024,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  })

  function post({ url, headers, body }: ExchangeRequest, signal: AbortSignal | undefined): Promise<AnswerEnd> {
    const target = URL.parse(url)
    if (target === null || !isHttp(target)) {
      return Promise.resolve({ kind: 'failed', stage: 'before-sending', failure: invalidUrl, wasStale: false })
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
      const forget = signal === undefined ? undefined : whenAborted(signal, breakOff)
      const finish = (end: AnswerEnd) => {
        stopTimer()
        forget?.()
        resolve(end)
      }
      let answer = new Answer(connections, connections.take(origin), (end) => {
        if (end.kind === 'answered' || !end.wasStale) {
          finish(end)
          return
        }
        answer = new Answer(connections, connections.open(origin), finish)
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
      const end = await post(request, signal)
      const durationMs = performance.now() - start
      if (end.kind === 'failed') return { kind: 'failed', startedAt, durationMs, stage: end.stage, ...end.failure }
      return {
        kind: 'answered',
        startedAt,
        durationMs,
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
