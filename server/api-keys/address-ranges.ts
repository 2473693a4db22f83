import { type IpAddress, isMappedIpv4, mappedBits, readIpAddress, textOfIpAddress } from '../lib/ip-address.ts'

/** A range of IP addresses: its first address, and how many leading bits all of them share. */
export type AddressRange = { first: IpAddress; prefix: number }

const rangeFault =
  'must be an IP address such as 203.0.113.7 or 2001:db8::1, or a range such as 203.0.113.0/24 or 2001:db8::/32'

/**
 * Reads an IP address or a range in CIDR notation (RFC 4632 §3.1, RFC 4291 §2.3). IPv4-mapped IPv6 becomes IPv4. Returns
 * the fault as text when it is neither, or when the address has bits beyond the prefix, which is likely a mistake.
 */
export function readRange(text: string): AddressRange | string {
  const [addressText = '', prefixText, ...rest] = text.split('/')
  const address = readIpAddress(addressText)
  if (address === null || rest.length > 0) return rangeFault
  const bits = 8 * address.length
  if (prefixText !== undefined && !/^(?:0|[1-9][0-9]{0,2})$/.test(prefixText)) return rangeFault
  const prefix = prefixText === undefined ? bits : Number(prefixText)
  if (prefix > bits) return `must have a prefix of at most ${bits} bits`
  const range = unmapped(address, prefix)
  const first = range.first.map((byte, index) => byte & maskAt(index, range.prefix))
  if (first.some((byte, index) => byte !== range.first[index])) {
    return `has bits beyond its prefix: the range begins at ${textOf({ ...range, first })}`
  }
  return range
}

/** Returns the canonical text of a range: a lone address without a prefix, IPv6 as in RFC 5952. */
export function textOf({ first, prefix }: AddressRange): string {
  const address = textOfIpAddress(first)
  return prefix === 8 * first.length ? address : `${address}/${prefix}`
}

/** Returns true when `address` lies in one of the ranges. Text that is no IP address lies in none. */
export function isWithin(ranges: readonly AddressRange[], address: string): boolean {
  const read = readIpAddress(address)
  return read !== null && isCovered(ranges, unmapped(read, 8 * read.length))
}

/** Returns true when all addresses of `inner` lie in one of `ranges`. */
export function isCovered(ranges: readonly AddressRange[], inner: AddressRange): boolean {
  return ranges.some(
    ({ first, prefix }) =>
      first.length === inner.first.length &&
      prefix <= inner.prefix &&
      first.every((byte, index) => byte === ((inner.first[index] ?? 0) & maskAt(index, prefix))),
  )
}

function unmapped(address: IpAddress, prefix: number): AddressRange {
  if (prefix < mappedBits || !isMappedIpv4(address)) return { first: address, prefix }
  return { first: address.slice(mappedBits / 8), prefix: prefix - mappedBits }
}

/** Returns the bits of one byte that lie within the prefix. */
function maskAt(index: number, prefix: number): number {
  return (0xff00 >> Math.min(8, Math.max(0, prefix - 8 * index))) & 0xff
}
