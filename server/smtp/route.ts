import type { Letter } from './envelope.ts'
import type { Outcome } from './transport.ts'

/** Where messages go: to a relay, or to the servers of their recipients. */
export type Route = {
  /** As `Transport` has it. */
  destinationOf(domain: string): string
  /** The one destination of all domains; null: there are many. */
  readonly only: string | null
  /** The hosts a destination is tried at first, as far as they are known by now; none: not known. */
  hostsOf(destination: string): readonly string[]
  /** What became of each recipient, in their order. Rejects only for a fault of ours. */
  send(destination: string, letter: Letter, signal: AbortSignal): Promise<readonly Outcome[]>
}
