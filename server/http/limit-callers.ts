import type { Clock } from '../lib/clock.ts'
import { signedInOf } from './caller.ts'
import { networkOf } from './client-address.ts'
import { tellLimit } from './rate-limit.ts'
import type { RouteGate } from './route-handler.ts'
import { createWindowLimits } from './window-limits.ts'

/** Requests a minute of one user, in all accounts and sessions together. In this process. */
const userRequestsPerMinute = 1_200
/** Requests a minute of one client address to routes that need neither key nor session. In this process. */
const openRequestsPerMinute = 60

/**
 * Returns the gate that limits requests: those with a key by `byKey`, those with a session by their user, and open ones
 * by the address of the client. A user does not use up the limit of an account. Must run after `identify`.
 */
export function limitCallers({ byKey, clock }: { byKey: RouteGate; clock: Clock }): RouteGate {
  const users = createWindowLimits({ clock, perMinute: userRequestsPerMinute })
  const clients = createWindowLimits({ clock, perMinute: openRequestsPerMinute })

  return (req, res, next) => {
    const signedIn = signedInOf(req)
    const isOpen = req.tsRestRoute.metadata.caller === 'none'
    if (signedIn === undefined && !isOpen) return byKey(req, res, next)
    const verdict = signedIn === undefined ? clients.take(networkOf(req.ip)) : users.take(signedIn.userId)
    const who = signedIn === undefined ? 'Your address has' : 'You have'
    tellLimit(res, verdict, { clock, spent: `${who} sent the ${verdict.limit} requests that are allowed in a minute.` })
    next()
  }
}
