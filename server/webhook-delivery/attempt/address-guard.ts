import { isIP, type LookupFunction } from 'node:net'
import { plainHost } from '../../network/local-host.ts'
import { isNotFound, type Resolve, type ResolvedAddress } from '../../network/name-resolution.ts'
import { isMetadataAddress, isPublicAddress } from '../../network/public-address.ts'

/** Where the operator lets deliveries go. */
export type AddressPolicy = {
  /** `http:` URLs too, not only `https:`. */
  allowHttp: boolean
  /** Loopback, private and other special-purpose addresses too; never link-local ones or a cloud's metadata. */
  allowPrivateNetworks: boolean
}

/** A target that policy forbids. The message is for the customer and never says where a name led to. */
export class AddressNotAllowedError extends Error {
  override name = 'AddressNotAllowedError'
}

/** A name without an address. */
export class NameNotResolvedError extends Error {
  override name = 'NameNotResolvedError'
  /** Whether there is none, as its name servers say; else they did not answer. */
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
 * What is wrong with `url` as a target under `policy`, as far as it can be told without asking the
 * DNS; null when nothing is. Literal addresses are judged in every notation, since parsing a URL
 * turns decimal, octal, hexadecimal and short forms into dotted ones (WHATWG URL, host parsing).
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
 * Judges the target of a connection that is about to be opened. Throws AddressNotAllowedError for a
 * protocol or a literal address that `policy` forbids; sockets do not look literal addresses up.
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

/** Why deliveries do not go to a host. */
type HostFault = 'metadata' | 'private'

/** Names by which the machines of clouds reach their metadata service. */
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

/** Judges literal addresses, the names of this machine and of metadata services; null for all other names. */
function faultOfHost(hostname: string, policy: AddressPolicy): HostFault | null {
  const host = plainHost(hostname)
  if (metadataNames.includes(host)) return 'metadata'
  if (isIP(host) !== 0) return faultOfAddresses([{ address: host }], policy)
  const isThisMachine = host === 'localhost' || host.endsWith('.localhost')
  return isThisMachine && !policy.allowPrivateNetworks ? 'private' : null
}

/** Judges all addresses of a name: one that is not allowed is enough. */
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
 * Whether deliveries to `url` are refused now, its host resolved as for a delivery. A name that cannot be
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
 * A `lookup` for sockets that resolves once and connects to nothing but what it has judged: it
 * refuses a name if any of its addresses is not public, and hands the checked addresses to the
 * socket, which asks nobody again. A name that changes its answer therefore gains nothing.
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
