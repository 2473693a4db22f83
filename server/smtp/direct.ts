import { unlessAborted } from '../lib/unless-aborted.ts'
import { hostPauses, pauseAfter } from './backoffs.ts'
import { brokenOff, SmtpConnectionError } from './connection.ts'
import type { Destination, Destinations } from './destinations.ts'
import { addressesOfHost, inTurn, type MailHost, type MailResolver } from './mx.ts'
import { bounced, deferred, isForGood, outcomeOfSession } from './outcome.ts'
import type { PoolTarget } from './pool-hosts.ts'
import type { Route } from './route.ts'
import { type DeliverMeans, deliver } from './send-to-host.ts'
import { SessionError } from './session.ts'
import type { Outcome } from './transport.ts'

export type DirectOptions = {
  destinations: Destinations
  resolver: MailResolver
  /** True: mail servers may have addresses that are not public. */
  allowPrivate: boolean
  /** The port of mail servers: 25, except in tests. */
  port: number
  means: DeliverMeans
}

/** Creates the route that sends each message to the first working mail server of its recipients' domain. */
export function createDirect({ destinations, resolver, allowPrivate, port, means }: DirectOptions): Route {
  function targetOf({ name }: MailHost, { mustVerify }: Destination): PoolTarget {
    return {
      name,
      port,
      tls: mustVerify ? 'verified' : 'opportunistic',
      credentials: null,
      addresses: () => addressesOfHost(resolver, name, allowPrivate),
      // No back-off after a permanent failure: every message is to get it as its own result. None after a failure of
      // STARTTLS either: other domains on the same host may not require TLS.
      backoffMsAfter(error, times) {
        if (error.stage === 'starttls' || isForGood(error)) return 0
        return pauseAfter(hostPauses, times)
      },
    }
  }

  return {
    destinationOf: (domain) => domain,
    only: null,
    hostsOf(domain) {
      const destination = destinations.known(domain)
      if (destination?.kind !== 'hosts') return []
      const awake = destination.hosts.filter(({ name }) => !means.pool.isBackingOff(name))
      const hosts = awake.length > 0 ? awake : destination.hosts
      const best = Math.min(...hosts.map(({ preference }) => preference))
      return hosts.flatMap(({ name, preference }) => (preference === best ? [name] : []))
    },
    async send(domain, letter, signal) {
      const all = (outcome: Outcome) => letter.recipients.map(() => outcome)
      const destination = await unlessAborted(destinations.of(domain), letter.waiting, brokenOff).catch(unknownOf)
      if (destination.kind === 'none') return all(bounced(destination.bounceType, destination.reason))
      if (destination.kind === 'unknown') {
        return all({ ...deferred(destination.reason), unusable: destination.unusable })
      }
      const errors: SessionError[] = []
      let failed: readonly Outcome[] | null = null
      for (const host of inTurn(destination.hosts)) {
        try {
          const outcomes = await deliver({ target: targetOf(host, destination), letter, isFinal: true }, means, signal)
          if (!outcomes.every(isHostFailing)) return outcomes
          failed ??= outcomes
        } catch (error) {
          if (!(error instanceof SessionError)) throw error
          errors.push(error)
        }
        if (letter.waiting.aborted) break
      }
      return failed ?? all(outcomeOfHosts(errors))
    },
  }
}

/** Returns the destination to use when the lookup was aborted. */
function unknownOf(error: unknown): Destination {
  if (!(error instanceof SmtpConnectionError)) throw error
  return { kind: 'unknown', reason: error.message, unusable: true, mustVerify: false }
}

/** Returns whether the host failed rather than refused: it does not have the message, and another host may take it. */
function isHostFailing(outcome: Outcome): boolean {
  if (outcome.kind !== 'deferred' || outcome.unknown) return false
  return outcome.reply === null || /^421\b/.test(outcome.reply)
}

/** Returns the outcome when no host could be used. The message waits as long as one host may work later. */
function outcomeOfHosts(errors: readonly SessionError[]): Outcome {
  const error = errors.find((each) => !isForGood(each)) ?? errors[0]
  return error === undefined ? deferred('The domain has no mail server to try.') : outcomeOfSession(error, false)
}
