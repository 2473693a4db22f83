import { lookup } from 'node:dns/promises'
import { hasCode } from '../lib/error-codes.ts'

export type ResolvedAddress = { address: string; family: number }

/** Resolves a name to all its addresses. Rejects with the codes of `node:dns`, such as ENOTFOUND. */
export type Resolve = (hostname: string) => Promise<ResolvedAddress[]>

/** The part of a resolver of `node:dns/promises` that is used here. */
export type Resolver = {
  resolve4(hostname: string): Promise<string[]>
  resolve6(hostname: string): Promise<string[]>
}

/** Resolves as the system does, including its hosts file. Uses the small thread pool that files and hashes share. */
export const resolveWithSystem: Resolve = (hostname) => lookup(hostname, { all: true })

/**
 * Returns a function that queries the name servers for A and AAAA records at once. It needs no thread, unlike
 * `resolveWithSystem`, so a slow name does not delay others.
 */
export function resolveWith(resolver: Resolver): Resolve {
  return async (hostname) => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
    const addresses = [...addressesOf(v4, 4), ...addressesOf(v6, 6)]
    const reasons = [v4, v6].flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    if (addresses.length > 0 || reasons.length === 0) return addresses
    // A failed query of one record says more than the absence of the other.
    throw reasons.find((reason) => !isNotFound(reason)) ?? reasons[0]
  }
}

/** Returns true when a resolver's error says that the name does not exist or has no address. */
export function isNotFound(error: unknown): boolean {
  return hasCode(error, 'ENOTFOUND', 'ENODATA')
}

function addressesOf(result: PromiseSettledResult<string[]>, family: number): ResolvedAddress[] {
  return result.status === 'fulfilled' ? result.value.map((address) => ({ address, family })) : []
}
