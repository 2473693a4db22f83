import { isIP } from 'node:net'
import { hasCode } from '../lib/error-codes.ts'
import { isNotFound, type ResolvedAddress, type Resolver, resolveWith } from '../network/name-resolution.ts'
import { isMetadataAddress, isPublicAddress } from '../network/public-address.ts'
import { SessionError } from './session.ts'

/** The required methods of a resolver of `node:dns/promises`. */
export type MailResolver = Resolver & {
  resolveMx(hostname: string): Promise<{ exchange: string; priority: number }[]>
  resolveTxt(hostname: string): Promise<string[][]>
}

/** A mail host of a domain. Lower preferences are tried first. */
export type MailHost = { name: string; preference: number }

export type MailHosts =
  | { kind: 'hosts'; hosts: readonly MailHost[] }
  /** The domain has no mail hosts, and waiting does not help. */
  | { kind: 'none'; bounceType: 'hard' | 'soft'; reason: string }
  /** The lookup failed. `unusable`: the resolver of this service refused the connection, so nothing was asked. */
  | { kind: 'unknown'; reason: string; unusable: boolean }

/** Maximum hosts to try for a domain, and maximum addresses of each host per address family. */
const maxHosts = 4
const maxAddresses = 2

const noDomain: MailHosts = { kind: 'none', bounceType: 'hard', reason: 'The domain does not exist (5.1.2).' }
const noServer: MailHosts = { kind: 'none', bounceType: 'hard', reason: 'The domain has no mail server (5.1.2).' }
const nullMx: MailHosts = { kind: 'none', bounceType: 'hard', reason: 'The domain takes no mail (5.1.10).' }
const noUsable: MailHosts = {
  kind: 'none',
  bounceType: 'soft',
  reason: 'The MX records of the domain name no host (5.4.4).',
}

/** Looks up the mail hosts of `domain`. Never rejects. Source: RFC 5321 §5.1, RFC 7505. */
export async function findMailHosts(resolver: MailResolver, domain: string): Promise<MailHosts> {
  try {
    return hostsOf(await resolver.resolveMx(domain))
  } catch (error) {
    if (hasCode(error, 'ENOTFOUND', 'EBADNAME')) return noDomain
    if (!hasCode(error, 'ENODATA')) return noAnswer('the domain', error)
  }
  try {
    // Without MX records the domain itself is the mail host.
    await resolveWith(resolver)(domain)
    return { kind: 'hosts', hosts: [{ name: domain, preference: 0 }] }
  } catch (error) {
    return isNotFound(error) ? noServer : noAnswer('the domain', error)
  }
}

function noAnswer(name: string, error: unknown): MailHosts {
  return { kind: 'unknown', reason: dnsFailure(name, error), unusable: isResolverAway(error) }
}

/** Response codes that are errors. Source: RFC 1035 §4.1.1. */
const answeredErrors: readonly string[] = ['SERVFAIL', 'REFUSED', 'FORMERR', 'NOTIMP']

/** Returns whether the resolver refused the connection: this service connects to no other name server. */
function isResolverAway(error: unknown): boolean {
  return hasCode(error, 'ECONNREFUSED')
}

/** Returns why a lookup failed, as a sentence for people. It tells an error response from a missing response. */
function dnsFailure(name: string, error: unknown): string {
  if (isResolverAway(error)) return 'The DNS resolver of this service refused the connection.'
  const code = answeredErrors.find((each) => hasCode(error, `E${each}`))
  if (code === undefined) return `The name servers of ${name} did not answer.`
  return `The name servers of ${name} answered with an error (${code}).`
}

function hostsOf(records: readonly { exchange: string; priority: number }[]): MailHosts {
  const hosts = records.map(({ exchange, priority }) => ({
    name: exchange.toLowerCase().replace(/\.$/, ''),
    preference: priority,
  }))
  if (hosts.length > 0 && hosts.every(({ name }) => name === '')) return nullMx
  const usable = hosts.filter(({ name }) => /^[a-z0-9_.-]+$/.test(name) && isIP(name) === 0)
  return usable.length === 0 ? noUsable : { kind: 'hosts', hosts: usable }
}

/**
 * Returns the hosts in the order to try them: by preference, and in random order within one preference to spread the
 * load. At most the first four are returned.
 *
 * @param random Returns a random number from 0 to below 1.
 */
export function inTurn(hosts: readonly MailHost[], random: () => number = Math.random): MailHost[] {
  return hosts
    .map((host) => ({ host, place: random() }))
    .sort((one, other) => one.host.preference - other.host.preference || one.place - other.place)
    .map(({ host }) => host)
    .slice(0, maxHosts)
}

/**
 * Returns the addresses of a host, IPv6 before IPv4. Throws SessionError when there are none, or none is allowed.
 *
 * @param allowPrivate True: addresses that are not public are allowed too, except those of metadata services.
 */
export async function addressesOfHost(
  resolver: MailResolver,
  name: string,
  allowPrivate: boolean,
): Promise<readonly string[]> {
  const found = await resolveWith(resolver)(name).catch((error: unknown) => {
    if (isNotFound(error)) throw unusable(name, 'The mail server of the domain has no address (5.4.4).', error)
    const message = dnsFailure('the mail server', error)
    throw new SessionError({ stage: 'connect', reply: null, host: name, message }, { cause: error })
  })
  const allowed = found.filter(
    ({ address }) => !isMetadataAddress(address) && (allowPrivate || isPublicAddress(address)),
  )
  if (allowed.length === 0) {
    throw unusable(name, 'The mail server of the domain has an address that is not public (5.4.4).', undefined)
  }
  return [...ofFamily(allowed, 6), ...ofFamily(allowed, 4)]
}

function ofFamily(addresses: readonly ResolvedAddress[], wanted: number): string[] {
  return addresses.flatMap(({ address, family }) => (family === wanted ? [address] : [])).slice(0, maxAddresses)
}

function unusable(host: string, message: string, cause: unknown): SessionError {
  return new SessionError({ stage: 'connect', reply: null, host, message, isPermanent: true }, { cause })
}
