import { isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** An IP address: 4 or 16 bytes. */
export type IpAddress = readonly number[]

/** The bits before the IPv4 address in an IPv4-mapped IPv6 address. Source: RFC 4291 §2.5.5.2. */
export const mappedBits = 96

/**
 * Reads an IP address without a zone. Returns null for any other text. Strict, unlike `ipaddr.parse`, which takes `1`,
 * `0x7f.1` and `010.0.0.1` for IPv4 addresses, and `::203.0.113.7` for an IPv4-mapped one.
 */
export function readIpAddress(text: string): IpAddress | null {
  if (isIPv4(text)) return ipaddr.IPv4.parse(text).toByteArray()
  if (!isIPv6(text) || text.includes('%')) return null
  // The URL parser writes the last 32 bits in hexadecimal.
  const { hostname } = new URL(`http://[${text}]`)
  return ipaddr.IPv6.parse(hostname.slice(1, -1)).toByteArray()
}

export function isMappedIpv4(address: IpAddress): boolean {
  return address.length === 16 && address.slice(0, 12).every((byte, index) => byte === (index < 10 ? 0 : 0xff))
}

/** Returns the text of an address, IPv6 as in RFC 5952. */
export function textOfIpAddress(address: IpAddress): string {
  return ipaddr.fromByteArray([...address]).toString()
}

/**
 * Returns the name at which the names of an address stand: `10.2.0.192.in-addr.arpa` for `192.0.2.10`.
 *
 * Source: RFC 1035 §3.5 (IPv4), RFC 3596 §2.5 (IPv6).
 */
export function reverseNameOf(address: IpAddress): string {
  if (address.length === 4) return `${address.toReversed().join('.')}.in-addr.arpa`
  const digits = address.flatMap((byte) => [byte >> 4, byte & 15]).map((digit) => digit.toString(16))
  return `${digits.toReversed().join('.')}.ip6.arpa`
}
