import type { Outcome } from '../transport.ts'
import { type DeliverMeans, deliver } from './deliver.ts'
import type { Destination, Destinations } from './destinations.ts'
import { brokenOff, LineError } from './line.ts'
import { addressesOfHost, inTurn, type MailHost, type MailResolver } from './mx.ts'
import { bounced, deferred, isForGood, outcomeOfSession } from './outcome.ts'
import type { PoolTarget } from './pool.ts'
import type { Route } from './route.ts'
import { SessionError } from './session.ts'
import { unlessAborted } from './unless-aborted.ts'

export type DirectOptions = {
  destinations: Destinations
  resolver: MailResolver
  /** Whether mail servers may have addresses that are not public. */
  allowPrivate: boolean
  /** Of mail servers: 25, but for tests. */
  port: number
  means: DeliverMeans
}

/** Each message to the mail servers of its recipients' domain, the first that can be talked to. */
export function createDirect({ destinations, resolver, allowPrivate, port, means }: DirectOptions): Route {
  function targetOf({ name }: MailHost, { mustVerify }: Destination): PoolTarget {
    return {
      name,
      port,
      tls: mustVerify ? 'verified' : 'opportunistic',
      credentials: null,
      addresses: () => addressesOfHost(resolver, name, allowPrivate),
    }
  }

  return {
    destinationOf: (domain) => domain,
    only: null,
    hostsOf(domain) {
      const destination = destinations.known(domain)
      if (destination?.kind !== 'hosts') return []
      const best = Math.min(...destination.hosts.map(({ preference }) => preference))
      return destination.hosts.flatMap(({ name, preference }) => (preference === best ? [name] : []))
    },
    async send(domain, letter, signal) {
      const all = (outcome: Outcome) => letter.recipients.map(() => outcome)
      const destination = await unlessAborted(destinations.of(domain), signal, brokenOff).catch(unknownOf)
      if (destination.kind === 'none') return all(bounced(destination.bounceType, destination.reason))
      if (destination.kind === 'unknown') return all(deferred(destination.reason))
      const errors: SessionError[] = []
      for (const host of inTurn(destination.hosts)) {
        try {
          return await deliver({ target: targetOf(host, destination), letter, isFinal: true }, means, signal)
        } catch (error) {
          if (!(error instanceof SessionError)) throw error
          errors.push(error)
          if (signal.aborted) break
        }
      }
      return all(outcomeOfHosts(errors))
    },
  }
}

/** For a destination that was not waited for. */
function unknownOf(error: unknown): Destination {
  if (!(error instanceof LineError)) throw error
  return { kind: 'unknown', reason: error.message, mustVerify: false }
}

/** As long as one host may do later, the message waits for it. */
function outcomeOfHosts(errors: readonly SessionError[]): Outcome {
  const error = errors.find((each) => !isForGood(each)) ?? errors[0]
  return error === undefined ? deferred('The domain has no mail server to try.') : outcomeOfSession(error, false)
}
