import { unlessAborted } from '../lib/unless-aborted.ts'
import { hostPauses, pauseAfter } from './backoffs.ts'
import { brokenOff, SmtpConnectionError } from './connection.ts'
import type { Destination, Destinations } from './destinations.ts'
import { addressesOfHost, inTurn, type MailHost, type MailResolver } from './mx.ts'
import { bounced, deferred, isForGood, outcomeOfSession } from './outcome.ts'
import type { PoolTarget } from './pool.ts'
import type { Route } from './route.ts'
import { type DeliverMeans, deliver } from './send-to-host.ts'
import { SessionError } from './session.ts'
import type { Outcome } from './transport.ts'

export type DirectOptions = {
  destinations: Destinations
  resolver: MailResolver
  /** Whether mail servers may have addresses that are not public. */
  allowPrivate: boolean
  /** Of mail servers: 25, but for tests. */
  port: number
  means: DeliverMeans
}

/** Each message to the mail servers of its recipients' domain, the first that is up to it. */
export function createDirect({ destinations, resolver, allowPrivate, port, means }: DirectOptions): Route {
  function targetOf({ name }: MailHost, { mustVerify }: Destination): PoolTarget {
    return {
      name,
      port,
      tls: mustVerify ? 'verified' : 'opportunistic',
      credentials: null,
      addresses: () => addressesOfHost(resolver, name, allowPrivate),
      // What is for good is for each message to hear; what a policy asks for of TLS, others may not ask for.
      restAfter(error, times) {
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
      const awake = destination.hosts.filter(({ name }) => !means.pool.isResting(name))
      const hosts = awake.length > 0 ? awake : destination.hosts
      const best = Math.min(...hosts.map(({ preference }) => preference))
      return hosts.flatMap(({ name, preference }) => (preference === best ? [name] : []))
    },
    async send(domain, letter, signal) {
      const all = (outcome: Outcome) => letter.recipients.map(() => outcome)
      const destination = await unlessAborted(destinations.of(domain), signal, brokenOff).catch(unknownOf)
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
        if (signal.aborted) break
      }
      return failed ?? all(outcomeOfHosts(errors))
    },
  }
}

/** For a destination that was not waited for. */
function unknownOf(error: unknown): Destination {
  if (!(error instanceof SmtpConnectionError)) throw error
  return { kind: 'unknown', reason: error.message, unusable: false, mustVerify: false }
}

/** Whether the host failed rather than refused: it has nothing of the message, and another may take it. */
function isHostFailing(outcome: Outcome): boolean {
  if (outcome.kind !== 'deferred' || outcome.unknown) return false
  return outcome.reply === null || /^421\b/.test(outcome.reply)
}

/** As long as one host may do later, the message waits for it. */
function outcomeOfHosts(errors: readonly SessionError[]): Outcome {
  const error = errors.find((each) => !isForGood(each)) ?? errors[0]
  return error === undefined ? deferred('The domain has no mail server to try.') : outcomeOfSession(error, false)
}
