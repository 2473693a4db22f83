import type { Lane } from '../shared/lanes.ts'

/** One message to send to recipients that share a destination. */
export type Conversation = {
  /** The result of `Transport.destinationOf` for the recipients. */
  destination: string
  lane: Lane
  /** The reverse path, without angle brackets; empty: none. */
  mailFrom: string
  /** At least one. */
  recipients: readonly { position: number; address: string }[]
  /** The whole signed message with CRLF line ends, before dot-stuffing. */
  message: Buffer
  /**
   * Ends the wait for a connection; a conversation that has begun goes on. It has to be aborted with the signal of
   * `send` too. Default: that signal.
   */
  waiting?: AbortSignal
}

/**
 * The outcome of a conversation for one recipient.
 *
 * `accepted`: the server accepted the message. `final`: it is the recipient's own server, not a relay.
 * `deferred`: refused for now, try again. `unknown`: the whole message was sent and the connection broke before the
 * reply, so the server may have accepted it. `congested`: the server asks for fewer or slower messages. `unusable`: no
 * session could be opened, or the DNS resolver of this service could not be asked. No server said anything about the
 * recipient, so this is not an attempt.
 * `bounced`: refused for good. `hard`: because of the address, which must not be sent to again.
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

/** Why a destination cannot be used: a sentence for people, the reply of the server, and its host name. */
export type TransportFailure = { reason: string; reply: string | null; host: string | null }

/** A destination that could not be used the last time. */
export type Unusable = TransportFailure & {
  /** The time of the next try, by one conversation. */
  until: Date
}

/** A way to send messages: to the recipients' servers, to a relay, or to the capture server of this service. */
export type Transport = {
  /** Returns the destination of `domain` (lower case, A-labels). Recipients of one destination share conversations. */
  destinationOf(domain: string): string
  /** The single destination of all messages, such as a relay; null: there are several destinations. */
  readonly only: string | null
  /** Returns why a destination cannot be used now; null: it can, and may only lack room. */
  unusable(destination: string): Unusable | null
  /** Returns how many conversations of a lane may begin now in total; 0: there is no reason to claim emails. */
  room(lane: Lane): number
  /** Returns how many more conversations of a lane with a destination may begin now, besides those that wait or run. */
  roomFor(destination: string, lane: Lane): number
  /**
   * Holds a conversation when a connection is free: one of the lane `single` before those in bulk. Returns the outcome of
   * each recipient, in their order. Never throws: a failure is an outcome. If aborted, it ends at once as `deferred`, but
   * still waits a moment for the reply to a message that was sent completely.
   */
  send(conversation: Conversation, signal: AbortSignal): Promise<readonly Outcome[]>
  /** Closes all connections with QUIT. */
  close(): Promise<void>
}
