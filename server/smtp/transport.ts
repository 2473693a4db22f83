/** One SMTP transaction to be made: one message, to recipients that share a destination. */
export type Conversation = {
  /** What `Transport.destinationOf` answered for the recipients. */
  destination: string
  /** The reverse path, without angle brackets; empty: none. */
  mailFrom: string
  /** At least one. */
  recipients: readonly { position: number; address: string }[]
  /** The whole message, CRLF line ends, signed; dots are not stuffed yet. */
  message: Buffer
}

/**
 * What a conversation told of one recipient.
 *
 * `accepted`: the server has taken it; `final` where it is the recipient's own, not a relay.
 * `deferred`: not now, try again. `unknown` where the message was sent whole and the line broke before the
 * answer: the server may have taken it. `congested` where the server asks for fewer or slower messages. `unusable`
 * where no server could be talked to, or the DNS resolver of this service not asked, so that nothing was said of the
 * recipient: it is no attempt.
 * `bounced`: never; `hard` where the address is the reason, so that it must not be written to again.
 */
export type Outcome =
  | { kind: 'accepted'; final: boolean; reply: string; host: string }
  | {
      kind: 'deferred'
      reason: string
      reply: string | null
      host: string | null
      unknown: boolean
      congested: boolean
      unusable: boolean
    }
  | { kind: 'bounced'; bounceType: 'hard' | 'soft'; reason: string; reply: string | null; host: string | null }

/** Why a destination cannot be used: a sentence for people, what the server said, and which that was. */
export type TransportFailure = { reason: string; reply: string | null; host: string | null }

/** A destination that could not be used the last time. */
export type Unusable = TransportFailure & {
  /** When it is tried again, by one conversation. */
  until: Date
}

/** Where messages go: to the recipients' servers, to a relay, or into the capture of this service. */
export type Transport = {
  /** What recipients at `domain` (lower case, A-labels) can share a conversation by. */
  destinationOf(domain: string): string
  /** The one destination of all messages, such as a relay; null: there are many. */
  readonly only: string | null
  /** What a destination waits for that gets no conversation now; null: for room. */
  unusable(destination: string): Unusable | null
  /** How many conversations may be begun now, wherever to; 0: none, there is nothing to claim for. */
  room(): number
  /** How many conversations with a destination may be begun now, beside those that wait or run; 0: none. */
  roomFor(destination: string): number
  /**
   * Holds a conversation, when its turn comes. Answers what became of each recipient, in their order.
   * Never throws: what goes wrong is an outcome. Aborted, it ends at once, as `deferred`; what was sent whole
   * is still waited for, for a moment.
   */
  send(conversation: Conversation, signal: AbortSignal): Promise<readonly Outcome[]>
  /** Says goodbye to all servers. */
  close(): Promise<void>
}
