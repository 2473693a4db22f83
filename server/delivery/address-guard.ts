import { isIP, type LookupFunction } from 'node:net'
import { isNotFound, type Resolve } from '../network/name-resolution.ts'
import { isPublicAddress } from '../network/public-address.ts'

/** Where the operator lets deliveries go. */
export type AddressPolicy = {
  /** `http:` URLs too, not only `https:`. */
  allowHttp: boolean
  /** Loopback, private, link-local and other special-purpose addresses too. */
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
  return isHostAllowed(hostname, policy) ? null : notPublic
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
  if (!isHostAllowed(target.hostname, policy)) throw leadsInside()
}

function isProtocolAllowed(protocol: string, policy: AddressPolicy): boolean {
  return protocol === 'https:' || (protocol === 'http:' && policy.allowHttp)
}

/** False for literal addresses that are not public, and for the names of this machine. */
function isHostAllowed(hostname: string, policy: AddressPolicy): boolean {
  if (policy.allowPrivateNetworks) return true
  // Without the brackets of IPv6 and without the dot of the root.
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
  if (host === 'localhost' || host.endsWith('.localhost')) return false
  return isIP(host) === 0 || isPublicAddress(host)
}

function leadsInside(): AddressNotAllowedError {
  return new AddressNotAllowedError(
    'The host of the URL leads to an address that is not public, and deliveries there are not allowed. Use a public address.',
  )
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
        if (first === undefined) {
          callback(new NameNotResolvedError(true), '', 0)
        } else if (!policy.allowPrivateNetworks && !addresses.every(({ address }) => isPublicAddress(address))) {
          callback(leadsInside(), '', 0)
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
