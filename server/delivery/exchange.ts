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
