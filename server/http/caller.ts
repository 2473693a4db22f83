import type { IncomingMessage } from 'node:http'
import type { KeyLimits } from '../api-keys/handing-on.ts'
import type { PortalCustomer } from '../portal-sessions/service.ts'
import type { Actor, Scope } from '../shared/scope.ts'
import type { SignedIn } from '../users/sessions.ts'

/** The sender of a request about an account: a key, a user of the dashboard, or a customer in the portal. */
export type Caller = Scope & {
  readonly actor: Actor
  /** The plan of the account. */
  readonly plan: string
  /** Names of permissions and of permission sets. May include names of a later version. */
  readonly permissions: readonly string[]
  /** The limits that a key made by the caller must keep to. */
  readonly limits: KeyLimits
}

const callers = new WeakMap<IncomingMessage, Caller>()
const refused = new WeakMap<IncomingMessage, LoggedCaller>()
const signedIns = new WeakMap<IncomingMessage, SignedIn>()
const portalCustomers = new WeakMap<IncomingMessage, PortalCustomer>()

export function setCaller(req: IncomingMessage, caller: Caller): void {
  callers.set(req, caller)
}

/** Returns the caller of an authenticated request. Throws on any other, since that is a bug in the server. */
export function callerOf(req: IncomingMessage): Caller {
  const caller = callers.get(req)
  if (caller === undefined) throw new Error('the request has not been authenticated')
  return caller
}

/** Returns the caller, or undefined for a request that is not authenticated or about no account. For logs. */
export function knownCallerOf(req: IncomingMessage): Caller | undefined {
  return callers.get(req)
}

/** A caller as far as logs need to know it. */
export type LoggedCaller = Pick<Caller, 'accountId' | 'mode' | 'actor'>

/** Stores whose key a request carries that must not be used: revoked, expired, or from another address. For logs. */
export function setRefusedCaller(req: IncomingMessage, caller: LoggedCaller): void {
  refused.set(req, caller)
}

/** Returns whose key a refused request carries, or undefined when it is not known or was not refused. For logs. */
export function refusedCallerOf(req: IncomingMessage): LoggedCaller | undefined {
  return refused.get(req)
}

export function setSignedIn(req: IncomingMessage, signedIn: SignedIn): void {
  signedIns.set(req, signedIn)
}

/** Returns the user of a request with a session, or undefined for one with a key or with neither. */
export function signedInOf(req: IncomingMessage): SignedIn | undefined {
  return signedIns.get(req)
}

export function setPortalCustomer(req: IncomingMessage, customer: PortalCustomer): void {
  portalCustomers.set(req, customer)
}

/** Returns the customer of a request with a portal session, or undefined for any other. */
export function portalCustomerOf(req: IncomingMessage): PortalCustomer | undefined {
  return portalCustomers.get(req)
}
