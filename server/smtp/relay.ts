import { isIP } from 'node:net'
import type { Resolve } from '../network/name-resolution.ts'
import { relayPauses } from './backoffs.ts'
import { outcomeOfSession } from './outcome.ts'
import type { PoolTarget } from './pool-hosts.ts'
import type { RelayConfig } from './relay-url.ts'
import type { Route } from './route.ts'
import { type DeliverMeans, deliver } from './send-to-host.ts'
import { SessionError } from './session.ts'

export type RelayOptions = {
  /** Returns the relay. Called for each message, because the port of a relay in this process is known late. */
  relay: () => RelayConfig
  /** True: a message that the relay accepts has been delivered. */
  isFinal: boolean
  /** Called for each message with the error if the relay cannot be used, or with null if it can. */
  onUse?: ((error: SessionError | null) => void) | undefined
  resolve: Resolve
  means: DeliverMeans
}

const only = 'relay'

/** Creates the route that sends all messages to one server. */
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
        // An abort by this service says nothing about the relay.
        if (!letter.waiting.aborted) onUse?.(error)
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
    // During this back-off, waiting conversations fail at once. It is shorter than the pause of the transport, so that
    // the next probe of the transport is let through.
    backoffMsAfter: () => relayPauses.firstMs / 2,
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
