import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { isPublicAddress } from './public-address.ts'

/** Names that the public DNS does not have at its top: RFC 2606, 6761, 6762, 8375, ICANN's `internal`, and `lan`. */
const localTopLevelNames = ['localhost', 'test', 'example', 'invalid', 'local', 'internal', 'home.arpa', 'lan']

/** Returns the host of a URL or setting without the brackets of IPv6 and the trailing dot, in lower case. */
export function plainHost(host: string): string {
  return host
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
    .toLowerCase()
}

/** Returns true for `localhost` and loopback addresses, which only this machine can reach. */
export function isLoopbackHost(host: string): boolean {
  const plain = plainHost(host)
  if (plain === 'localhost' || plain.endsWith('.localhost')) return true
  return isIP(plain) !== 0 && ipaddr.process(plain).range() === 'loopback'
}

/**
 * Returns true when a URL with this host leads clients to their own machine: a loopback host, or 0.0.0.0 and ::, which
 * connect to it too.
 */
export function leadsToOwnMachine(host: string): boolean {
  const plain = plainHost(host)
  return isLoopbackHost(plain) || (isIP(plain) !== 0 && ipaddr.process(plain).range() === 'unspecified')
}

/** Returns true when other machines may reach the host of a URL: a public address, or a possible name in public DNS. */
export function isPublicUrl(url: string): boolean {
  const host = plainHost(URL.parse(url)?.hostname ?? '')
  if (isIP(host) !== 0) return isPublicAddress(host)
  return host.includes('.') && !localTopLevelNames.some((name) => host.endsWith(`.${name}`))
}
