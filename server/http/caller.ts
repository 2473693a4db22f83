import type { IncomingMessage } from 'node:http'
import type { AuthenticatedKey } from '../api-keys/service.ts'

/** Who sent a request: the key it was authenticated with. */
export type Caller = AuthenticatedKey

const callers = new WeakMap<IncomingMessage, Caller>()

export function setCaller(req: IncomingMessage, caller: Caller): void {
  callers.set(req, caller)
}

/** The caller of an authenticated request. Throws on any other: a route without authentication is a fault of ours. */
export function callerOf(req: IncomingMessage): Caller {
  const caller = callers.get(req)
  if (caller === undefined) throw new Error('the request has not been authenticated')
  return caller
}

/** The same, where it may be that nobody was authenticated: for logs. */
export function knownCallerOf(req: IncomingMessage): Caller | undefined {
  return callers.get(req)
}
