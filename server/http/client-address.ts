import { isMappedIpv4, readIpAddress, textOfIpAddress } from '../lib/ip-address.ts'

/**
 * Returns the IP address of a client, `req.ip`, in one form: IPv4-mapped IPv6 as IPv4, IPv6 as in RFC 5952, without a
 * zone. Returns null when the client has already disconnected, or when a proxy sent something else than an IP address.
 */
export function clientAddressOf(ip: string | undefined): string | null {
  const address = readIpAddress(ip?.split('%', 1)[0] ?? '')
  if (address === null) return null
  return textOfIpAddress(isMappedIpv4(address) ? address.slice(12) : address)
}
