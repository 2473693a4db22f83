import { isIP } from 'node:net'

/** The relying party: the service that passkeys belong to. Source: Web Authentication Level 3 §5.1.2, §13.4.9. */
export type RelyingParty = {
  /** The host name. A passkey is bound to it. */
  id: string
  /** The origin of the pages that passkeys work on. */
  origin: string
  /** False: no browser offers a passkey there. It needs a host name, and https unless that is `localhost`. */
  isUsable: boolean
}

/**
 * Returns the relying party of a service. It depends on nothing that a request says of itself, such as `Host`.
 *
 * Without `PUBLIC_URL` the service is for this machine, and its URL may begin with an IP address, which passkeys cannot
 * belong to: then they belong to `localhost`, on the port that the service listens on.
 *
 * @param publicUrl The URL of the service for clients. Null: not known.
 * @param listeningUrl The URL that the service listens on.
 */
export function relyingPartyOf(publicUrl: string | null, listeningUrl: string): RelyingParty {
  const url = new URL(publicUrl ?? listeningUrl)
  if (publicUrl === null && isLoopbackAddress(url.hostname)) url.hostname = 'localhost'
  const { hostname: id, origin, protocol } = url
  return { id, origin, isUsable: !isAddress(id) && (protocol === 'https:' || isLocalName(id)) }
}

function isAddress(host: string): boolean {
  return isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0
}

function isLoopbackAddress(host: string): boolean {
  return host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** Browsers take these for this machine. Source: W3C Secure Contexts §3.1. */
function isLocalName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost')
}
