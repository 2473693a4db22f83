import { lookup } from 'node:dns/promises'
import { hasCode } from '../lib/error-codes.ts'

export type ResolvedAddress = { address: string; family: number }

/** All addresses of a name. Rejects with the codes of `node:dns`, such as ENOTFOUND. */
export type Resolve = (hostname: string) => Promise<ResolvedAddress[]>

/** What is needed of a resolver of `node:dns/promises`. */
export type Resolver = {
  resolve4(hostname: string): Promise<string[]>
  resolve6(hostname: string): Promise<string[]>
}

/** As the system does, with its file of hosts. Works on the few threads that files and hashes share. */
export const resolveWithSystem: Resolve = (hostname) => lookup(hostname, { all: true })

/**
 * Asks the name servers for A and AAAA at once. Names that hang hold up no other: unlike the system's
 * way, this needs no thread.
 */
export function resolveWith(resolver: Resolver): Resolve {
  return async (hostname) => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
    const addresses = [...addressesOf(v4, 4), ...addressesOf(v6, 6)]
    const reasons = [v4, v6].flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
    if (addresses.length > 0 || reasons.length === 0) return addresses
    // That one record is missing says less than why the other could not be had.
    throw reasons.find((reason) => !isNotFound(reason)) ?? reasons[0]
  }
}

/** Whether a resolver's error says that there is no such name, or that it has no address. */
export function isNotFound(error: unknown): boolean {
  return hasCode(error, 'ENOTFOUND', 'ENODATA')
}

function addressesOf(answer: PromiseSettledResult<string[]>, family: number): ResolvedAddress[] {
  return answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : []
}
