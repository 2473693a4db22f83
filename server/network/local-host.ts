import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { isPublicAddress } from './public-address.ts'

/** Top-level names that the public DNS does not have: RFC 2606, 6761, 6762, 8375, and ICANN's `internal`. */
const localTopLevelNames = ['localhost', 'test', 'example', 'invalid', 'local', 'internal', 'home.arpa', 'lan']

/** A host of a URL or a setting: without the brackets of IPv6, without the dot of the root, in small letters. */
export function plainHost(host: string): string {
  return host
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
    .toLowerCase()
}

/** Whether a host is this machine and no other can reach it: `localhost` or a loopback address. */
export function isLoopbackHost(host: string): boolean {
  const plain = plainHost(host)
  if (plain === 'localhost' || plain.endsWith('.localhost')) return true
  return isIP(plain) !== 0 && ipaddr.process(plain).range() === 'loopback'
}

/**
 * Whether a URL with this host leads a client to its own machine: a loopback host, or 0.0.0.0 and ::, which connect
 * to it too.
 */
export function leadsToOwnMachine(host: string): boolean {
  const plain = plainHost(host)
  return isLoopbackHost(plain) || (isIP(plain) !== 0 && ipaddr.process(plain).range() === 'unspecified')
}

/** Whether a URL may lead others to its host: a public address, or a name that the public DNS can have. */
export function isPublicUrl(url: string): boolean {
  const host = plainHost(URL.parse(url)?.hostname ?? '')
  if (isIP(host) !== 0) return isPublicAddress(host)
  return host.includes('.') && !localTopLevelNames.some((name) => host.endsWith(`.${name}`))
}
