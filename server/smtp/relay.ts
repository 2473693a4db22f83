import { isIP } from 'node:net'
import type { Resolve } from '../network/name-resolution.ts'
import { relayPauses } from './backoffs.ts'
import { outcomeOfSession } from './outcome.ts'
import type { PoolTarget } from './pool.ts'
import type { RelayConfig } from './relay-url.ts'
import type { Route } from './route.ts'
import { type DeliverMeans, deliver } from './send-to-host.ts'
import { SessionError } from './session.ts'

export type RelayOptions = {
  /** Asked for each message, since the port of a relay in this process is known late. */
  relay: () => RelayConfig
  /** Whether what the relay takes has arrived. */
  isFinal: boolean
  /** Told of each message: why the relay cannot be used, or null where it can. */
  onUse?: ((error: SessionError | null) => void) | undefined
  resolve: Resolve
  means: DeliverMeans
}

const only = 'relay'

/** All messages to one server. */
export function createRelay({ relay, isFinal, onUse, resolve, means }: RelayOptions): Route {
  return {
    destinationOf: () => only,
    only,
    hostsOf: () => [relay().host],
    async send(_destination, letter, signal) {
      try {
        const outcomes = await deliver({ target: targetOf(relay(), resolve), letter, isFinal }, means, signal)
        onUse?.(null)
        return outcomes
      } catch (error) {
        if (!(error instanceof SessionError)) throw error
        // What was broken off by us tells nothing of the relay.
        if (!signal.aborted) onUse?.(error)
        return letter.recipients.map(() => outcomeOfSession(error, true))
      }
    },
  }
}

function targetOf(relay: RelayConfig, resolve: Resolve): PoolTarget {
  const { host, port, tls, credentials } = relay
  return {
    name: host,
    port,
    tls,
    credentials,
    // Refuses at once those that wait for a connection. Shorter than the transport waits: then one asks again.
    restAfter: () => relayPauses.firstMs / 2,
    async addresses() {
      if (isIP(host) !== 0) return [host]
      try {
        return (await resolve(host)).map(({ address }) => address)
      } catch (error) {
        const message = 'The address of the mail server could not be found.'
        throw new SessionError({ stage: 'connect', reply: null, host, message }, { cause: error })
      }
    },
  }
}
