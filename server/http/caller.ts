import type { IncomingMessage } from 'node:http'
import type { KeyLimits } from '../api-keys/handing-on.ts'
import type { Actor, Scope } from '../shared/scope.ts'

/** The sender of a request: the key that authenticated it. */
export type Caller = Scope & {
  readonly actor: Actor
  /** The plan of the account. */
  readonly plan: string
  /** Names of permissions and of permission sets. May include names of a later version. */
  readonly permissions: readonly string[]
  /** What a key that the caller makes is limited to. */
  readonly limits: KeyLimits
}

const callers = new WeakMap<IncomingMessage, Caller>()

export function setCaller(req: IncomingMessage, caller: Caller): void {
  callers.set(req, caller)
}

/** Returns the caller of an authenticated request. Throws on any other, since that is a bug in the server. */
export function callerOf(req: IncomingMessage): Caller {
  const caller = callers.get(req)
  if (caller === undefined) throw new Error('the request has not been authenticated')
  return caller
}

/** Returns the caller, or undefined for a request that is not authenticated. For logs. */
export function knownCallerOf(req: IncomingMessage): Caller | undefined {
  return callers.get(req)
}
