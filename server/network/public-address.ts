import ipaddr from 'ipaddr.js'

/*
 * A public address can be reached from the whole Internet. ipaddr.js calls such addresses unicast; the rules below add
 * what it lacks. Source: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890).
 */

/** The only block of public unicast addresses in IPv6. All others are special or not in use. */
const globalUnicastV6 = ipaddr.IPv6.parseCIDR('2000::/3')

/** Special-purpose blocks inside 2000::/3 that ipaddr.js treats as ordinary. */
const specialV6 = ['2001::/23', '2001:db8::/32', '3fff::/20', '2620:4f:8000::/48'].map((block) =>
  ipaddr.IPv6.parseCIDR(block),
)

/** IPv6 blocks that lead to an IPv4 address, with the byte offset of that address. */
const embeddings: { block: [ipaddr.IPv6, number]; offset: number }[] = [
  // Mapped (RFC 4291 §2.5.5.2).
  { block: ipaddr.IPv6.parseCIDR('::ffff:0:0/96'), offset: 12 },
  // NAT64, well-known prefix (RFC 6052).
  { block: ipaddr.IPv6.parseCIDR('64:ff9b::/96'), offset: 12 },
  // 6to4 (RFC 3056).
  { block: ipaddr.IPv6.parseCIDR('2002::/16'), offset: 2 },
]

/** Returns true when `address`, IPv4 or IPv6 as text, is public. Returns false for other text. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.parse(address)
  return parsed.kind() === 'ipv4' ? isPublicV4(parsed as ipaddr.IPv4) : isPublicV6(parsed as ipaddr.IPv6)
}

function isPublicV4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && !isMetadataV4(address)
}

function isPublicV6(address: ipaddr.IPv6): boolean {
  // A zone names an interface of this machine.
  if (address.zoneId !== undefined && address.zoneId !== null) return false
  for (const { block, offset } of embeddings) {
    if (!address.match(block)) continue
    const bytes = address.toByteArray().slice(offset, offset + 4)
    return isPublicV4(new ipaddr.IPv4(bytes))
  }
  return address.match(globalUnicastV6) && !specialV6.some((block) => address.match(block))
}

/** Link-local (RFC 3927), and the metadata services of Azure, Alibaba Cloud and Oracle Cloud. */
const metadataV4 = ['169.254.0.0/16', '168.63.129.16/32', '100.100.100.200/32', '192.0.0.192/32'].map((block) =>
  ipaddr.IPv4.parseCIDR(block),
)

/** Link-local (RFC 4291 §2.5.6), the local services of AWS, and the metadata of Google Cloud, Scaleway and Oracle. */
const metadataV6 = ['fe80::/10', 'fd00:ec2::/32', 'fd20:ce::254/128', 'fd00:42::42/128', 'fd00:c1::a9fe:a9fe/128'].map(
  (block) => ipaddr.IPv6.parseCIDR(block),
)

/** More IPv6 blocks that lead to an IPv4 address, none of them public: compatible, translated, local NAT64. */
const privateEmbeddings: typeof embeddings = [
  { block: ipaddr.IPv6.parseCIDR('::/96'), offset: 12 },
  { block: ipaddr.IPv6.parseCIDR('::ffff:0:0:0/96'), offset: 12 },
  { block: ipaddr.IPv6.parseCIDR('64:ff9b:1::/48'), offset: 12 },
]

/**
 * Returns true when `address`, in any notation, is link-local or belongs to the metadata service of a cloud, which
 * gives out credentials. Returns false for other text.
 */
export function isMetadataAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.parse(address)
  return parsed.kind() === 'ipv4' ? isMetadataV4(parsed as ipaddr.IPv4) : isMetadataV6(parsed as ipaddr.IPv6)
}

function isMetadataV4(address: ipaddr.IPv4): boolean {
  return metadataV4.some((block) => address.match(block))
}

function isMetadataV6(address: ipaddr.IPv6): boolean {
  const inner = [...embeddings, ...privateEmbeddings].find(({ block }) => address.match(block))
  if (inner !== undefined) {
    const bytes = address.toByteArray().slice(inner.offset, inner.offset + 4)
    return isMetadataV4(new ipaddr.IPv4(bytes))
  }
  return metadataV6.some((block) => address.match(block))
}
