import { lookup as systemLookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { isPublicAddress } from './public-address.ts'

/** Where the operator lets deliveries go. */
export type AddressPolicy = {
  /** `http:` URLs too, not only `https:`. */
  allowHttp: boolean
  /** Loopback, private, link-local and other special-purpose addresses too. */
  allowPrivateNetworks: boolean
}

export type ResolvedAddress = { address: string; family: number }

/** All addresses of a name. Rejects with the codes of `node:dns`, such as ENOTFOUND. */
export type Resolve = (hostname: string) => Promise<ResolvedAddress[]>

/** A target that policy forbids. The message never says which address a name led to. */
export class AddressNotAllowedError extends Error {
  override name = 'AddressNotAllowedError'
  readonly code = 'ADDRESS_NOT_ALLOWED'
}

const notPublic =
  'must lead to a public address; this one is local, private or reserved (the operator can allow it with WEBHOOK_ALLOW_PRIVATE_NETWORKS)'

/**
 * What is wrong with `url` as a target under `policy`, as far as it can be told without asking the
 * DNS; null when nothing is. Literal addresses are judged in every notation, since parsing a URL
 * turns decimal, octal, hexadecimal and short forms into dotted ones (WHATWG URL, host parsing).
 */
export function faultOfUrl(url: string, policy: AddressPolicy): string | null {
  if (!URL.canParse(url)) return 'must be an absolute URL'
  const { protocol, hostname } = new URL(url)
  if (protocol !== 'https:' && !(protocol === 'http:' && policy.allowHttp)) {
    return 'must begin with https:// (the operator can allow http:// with WEBHOOK_ALLOW_HTTP)'
  }
  if (policy.allowPrivateNetworks) return null
  const host = bareHost(hostname)
  if (host === 'localhost' || host.endsWith('.localhost')) return notPublic
  if (isIP(host) !== 0 && !isPublicAddress(host)) return notPublic
  return null
}

/** The host without the brackets of IPv6 and without the dot of the root. */
function bareHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** Throws when `hostname` is a literal address that policy forbids; sockets do not look those up. */
export function assertLiteralAllowed(hostname: string, policy: AddressPolicy): void {
  const host = bareHost(hostname)
  if (policy.allowPrivateNetworks || isIP(host) === 0) return
  if (!isPublicAddress(host)) throw new AddressNotAllowedError('The address is not public.')
}

const resolveWithSystem: Resolve = (hostname) => systemLookup(hostname, { all: true })

/**
 * A `lookup` for sockets that resolves once and connects to nothing but what it has judged: it
 * refuses a name if any of its addresses is not public, and hands the checked addresses to the
 * socket, which asks nobody again. A name that changes its answer therefore gains nothing.
 */
export function guardedLookup(policy: AddressPolicy, resolve: Resolve = resolveWithSystem): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const [first] = addresses
        if (first === undefined) {
          callback(Object.assign(new Error('no addresses'), { code: 'ENODATA' }), '', 0)
        } else if (!policy.allowPrivateNetworks && !addresses.every(({ address }) => isPublicAddress(address))) {
          callback(new AddressNotAllowedError('The name leads to an address that is not public.'), '', 0)
        } else if (options.all) {
          callback(null, addresses)
        } else {
          callback(null, first.address, first.family)
        }
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    )
  }
}
