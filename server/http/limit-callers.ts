import type { Clock } from '../lib/clock.ts'
import type { PortalCustomer } from '../portal-sessions/service.ts'
import { portalCustomerOf, signedInOf } from './caller.ts'
import { networkOf } from './client-address.ts'
import { type RateLimitVerdict, tellLimit } from './rate-limit.ts'
import type { RouteGate } from './route-handler.ts'
import { createWindowLimits } from './window-limits.ts'

/** Requests a minute of one user, in all accounts and sessions together. In this process. */
const userRequestsPerMinute = 1_200
/** Requests a minute in the portal: of one customer in all sessions together, and of all customers of an account. */
const portalRequestsPerMinute = { customer: 300, account: 3_000 } as const
/** Requests a minute of one client address to routes that need neither key nor session. In this process. */
const openRequestsPerMinute = 60

/**
 * Returns the gate that limits requests: those with a key by `byKey`, those with a session by their user, those of
 * the portal by the customer and the account, and open ones by the address of the client. Neither users nor customers
 * use up the limit of an account. Must run after `identify`.
 */
export function limitCallers({ byKey, clock }: { byKey: RouteGate; clock: Clock }): RouteGate {
  const users = createWindowLimits({ clock, perMinute: userRequestsPerMinute })
  const clients = createWindowLimits({ clock, perMinute: openRequestsPerMinute })

  const customers = createWindowLimits({ clock, perMinute: portalRequestsPerMinute.customer })
  const portals = createWindowLimits({ clock, perMinute: portalRequestsPerMinute.account })

  function takeOfPortal({ accountId, mode, customer }: PortalCustomer): { verdict: RateLimitVerdict; who: string } {
    const own = customers.take(`${accountId} ${mode} ${customer}`)
    // A request over the limit of its customer does not count towards the limit of all customers.
    const all = own.allowed ? portals.take(accountId) : own
    return all.allowed
      ? { verdict: own, who: 'You have' }
      : { verdict: all, who: own.allowed ? 'All portals have' : 'You have' }
  }

  return (req, res, next) => {
    const portal = portalCustomerOf(req)
    if (portal !== undefined) {
      const { verdict, who } = takeOfPortal(portal)
      tellLimit(res, verdict, { clock, spent: spentBy(who, verdict) })
      next()
      return undefined
    }
    const signedIn = signedInOf(req)
    const isOpen = req.tsRestRoute.metadata.caller === 'none'
    if (signedIn === undefined && !isOpen) return byKey(req, res, next)
    const verdict = signedIn === undefined ? clients.take(networkOf(req.ip)) : users.take(signedIn.userId)
    const who = signedIn === undefined ? 'Your address has' : 'You have'
    tellLimit(res, verdict, { clock, spent: spentBy(who, verdict) })
    next()
    return undefined
  }
}

function spentBy(who: string, { limit }: RateLimitVerdict): string {
  return `${who} sent the ${limit} requests that are allowed in a minute.`
}
