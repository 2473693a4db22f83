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
