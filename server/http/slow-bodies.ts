import type { IncomingMessage } from 'node:http'

const slow = new WeakSet<object>()

/**
 * Lets the body of a request take longer to arrive than those of others. It must not stand still all the same: a
 * connection without traffic is closed as any other.
 */
export function allowSlowBody({ socket }: IncomingMessage): void {
  slow.add(socket)
}

/** Returns true for a connection whose present request may take longer to arrive. */
export function mayBeSlow(socket: object, isArriving: boolean): boolean {
  return isArriving && slow.has(socket)
}
