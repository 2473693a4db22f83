import { isIP, type LookupFunction } from 'node:net'
import { plainHost } from '../../network/local-host.ts'
import { isNotFound, type Resolve, type ResolvedAddress } from '../../network/name-resolution.ts'
import { isMetadataAddress, isPublicAddress } from '../../network/public-address.ts'

/** The targets that the operator allows for deliveries. */
export type AddressPolicy = {
  /** Allows `http:` URLs in addition to `https:`. */
  allowHttp: boolean
  /**
   * Allows loopback, private and other special-purpose addresses; never link-local ones or a cloud's metadata service.
   */
  allowPrivateNetworks: boolean
}

/** A target that the policy forbids. The message is for the customer and never contains the resolved address. */
export class AddressNotAllowedError extends Error {
  override name = 'AddressNotAllowedError'
}

/** A name that could not be resolved. */
export class NameNotResolvedError extends Error {
  override name = 'NameNotResolvedError'
  /** True when the name servers say that the name has no address; false when they did not respond. */
  readonly isMissing: boolean

  constructor(isMissing: boolean, options?: ErrorOptions) {
    super('The name could not be resolved.', options)
    this.isMissing = isMissing
  }
}

const notHttps = 'must begin with https:// (the operator can allow http:// with WEBHOOK_ALLOW_HTTP)'
const isMetadata = 'must not lead to a link-local address or to the metadata service of a cloud: no setting allows that'
const notPublic =
  'must lead to a public address; this one is local, private or reserved (the operator can allow it with WEBHOOK_ALLOW_PRIVATE_NETWORKS)'

/**
 * Returns what is wrong with `url` as a target under `policy`, as far as that can be told without DNS. Null: nothing.
 * Literal addresses are checked in every notation, since URL parsing turns decimal, octal, hexadecimal and short forms
 * into dotted ones (WHATWG URL, host parsing).
 */
export function faultOfUrl(url: string, policy: AddressPolicy): string | null {
  if (!URL.canParse(url)) return 'must be an absolute URL, such as https://example.com/hooks'
  const { protocol, hostname, username, password } = new URL(url)
  if (!isProtocolAllowed(protocol, policy)) return notHttps
  if (username !== '' || password !== '') return 'must not carry a user name or password'
  const fault = faultOfHost(hostname, policy)
  return fault === null ? null : { metadata: isMetadata, private: notPublic }[fault]
}

/**
 * Checks the target of a connection that is about to be opened. Throws AddressNotAllowedError for a protocol or a
 * literal address that `policy` forbids; sockets do not look up literal addresses.
 */
export function assertTargetAllowed(target: { protocol: string; hostname: string }, policy: AddressPolicy): void {
  if (!isProtocolAllowed(target.protocol, policy)) {
    throw new AddressNotAllowedError(
      'The URL begins with http://, and only https:// is allowed. Change it to https://.',
    )
  }
  const fault = faultOfHost(target.hostname, policy)
  if (fault !== null) throw leadsInside(fault)
}

function isProtocolAllowed(protocol: string, policy: AddressPolicy): boolean {
  return protocol === 'https:' || (protocol === 'http:' && policy.allowHttp)
}

/** Why deliveries to a host are forbidden. */
type HostFault = 'metadata' | 'private'

/** Host names of the metadata services of clouds. */
const metadataNames: readonly string[] = [
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
  'metadata.azure.internal',
  'metadata.tencentyun.com',
  'metadata.platformequinix.com',
  'rancher-metadata',
]

/**
 * Checks literal addresses, the names of this machine and those of metadata services. Returns null for all other names.
 */
function faultOfHost(hostname: string, policy: AddressPolicy): HostFault | null {
  const host = plainHost(hostname)
  if (metadataNames.includes(host)) return 'metadata'
  if (isIP(host) !== 0) return faultOfAddresses([{ address: host }], policy)
  const isThisMachine = host === 'localhost' || host.endsWith('.localhost')
  return isThisMachine && !policy.allowPrivateNetworks ? 'private' : null
}

/** Checks all addresses of a name: one forbidden address is enough. */
function faultOfAddresses(
  addresses: readonly Pick<ResolvedAddress, 'address'>[],
  { allowPrivateNetworks }: AddressPolicy,
): HostFault | null {
  if (addresses.some(({ address }) => isMetadataAddress(address))) return 'metadata'
  return allowPrivateNetworks || addresses.every(({ address }) => isPublicAddress(address)) ? null : 'private'
}

const faultMessages: Record<HostFault, string> = {
  metadata:
    'The host of the URL leads to a link-local address or to the metadata service of a cloud, and deliveries never go there. Use a public address.',
  private:
    'The host of the URL leads to an address that is not public, and deliveries there are not allowed. Use a public address.',
}

function leadsInside(fault: HostFault): AddressNotAllowedError {
  return new AddressNotAllowedError(faultMessages[fault])
}

/**
 * Returns true if deliveries to `url` are refused now; its host is resolved as for a delivery. A name that cannot be
 * resolved is not refused.
 */
export async function isRefused(url: string, policy: AddressPolicy, resolve: Resolve): Promise<boolean> {
  if (faultOfUrl(url, policy) !== null) return true
  const host = plainHost(new URL(url).hostname)
  if (isIP(host) !== 0) return false
  const addresses = await resolve(host).catch(() => [])
  return faultOfAddresses(addresses, policy) !== null
}

/**
 * Returns a `lookup` for sockets that resolves a name once and lets the socket connect only to the addresses it has
 * checked. It refuses a name if any of its addresses is forbidden. The socket does not resolve again, so DNS rebinding
 * gains nothing.
 *
 * Fails with AddressNotAllowedError or NameNotResolvedError.
 */
export function guardedLookup(policy: AddressPolicy, resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const [first] = addresses
        const fault = faultOfAddresses(addresses, policy)
        if (first === undefined) {
          callback(new NameNotResolvedError(true), '', 0)
        } else if (fault !== null) {
          callback(leadsInside(fault), '', 0)
        } else if (options.all) {
          callback(null, addresses)
        } else {
          callback(null, first.address, first.family)
        }
      },
      (error: unknown) => callback(new NameNotResolvedError(isNotFound(error), { cause: error }), '', 0),
    )
  }
}
