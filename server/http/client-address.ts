import { isIPv4 } from 'node:net'
import { isMappedIpv4, readIpAddress, textOfIpAddress } from '../lib/ip-address.ts'

/**
 * Returns the IP address of a client, `req.ip`, in one form: IPv4-mapped IPv6 as IPv4, IPv6 as in RFC 5952, without a
 * zone and a port, which some proxies write into `X-Forwarded-For`. Returns null when the client has already
 * disconnected, or when a proxy sent something else than an IP address.
 */
export function clientAddressOf(ip: string | undefined): string | null {
  // As Node writes IPv4 addresses. They have one form only.
  const usual = ip?.startsWith('::ffff:') ? ip.slice('::ffff:'.length) : ip
  if (usual !== undefined && isIPv4(usual)) return usual
  const bytes = bytesOf(ip)
  return bytes && textOfIpAddress(bytes)
}

/**
 * Returns the name that a client, `req.ip`, is counted under. For IPv6 its first 64 bits, since one client usually has
 * all addresses of a /64.
 *
 * Source: RFC 4291 §2.5.1 (64-bit interface identifiers).
 */
export function networkOf(ip: string | undefined): string {
  const bytes = bytesOf(ip)
  if (bytes === null) return 'unknown'
  const isIpv6 = bytes.length === 16
  return textOfIpAddress(isIpv6 ? bytes.map((byte, index) => (index < 8 ? byte : 0)) : bytes)
}

function bytesOf(ip: string | undefined): readonly number[] | null {
  const address = readIpAddress(withoutPort(ip ?? '').split('%', 1)[0] ?? '')
  // The IPv4 address is at the end: RFC 4291 §2.5.5.2.
  return address !== null && isMappedIpv4(address) ? address.slice(12) : address
}

function withoutPort(text: string): string {
  return /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text
}
