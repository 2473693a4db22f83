import type { Conversation, Outcome } from './transport.ts'

/** A message for a route. `waiting` is aborted with the signal of `send` too. */
export type Letter = Omit<Conversation, 'destination'> & { waiting: AbortSignal }

/** A way to send messages: through a relay, or directly to the servers of the recipients. */
export type Route = {
  /** See `Transport.destinationOf`. */
  destinationOf(domain: string): string
  /** The single destination of all domains; null: there are several destinations. */
  readonly only: string | null
  /** Returns the hosts that are tried first for a destination; empty: they are not known yet. */
  hostsOf(destination: string): readonly string[]
  /** Sends a message and returns the outcome of each recipient, in their order. Rejects only for an internal error. */
  send(destination: string, letter: Letter, signal: AbortSignal): Promise<readonly Outcome[]>
}
