import { idPattern, idPrefixes, idSuffix } from '../../contract/ids.ts'
import { portalSessionHours } from '../../contract/portal-sessions.ts'
import { isLoopbackHost } from '../network/local-host.ts'
import type { RouteRequest } from './route-handler.ts'

const prefix = 'postern_portal_'
/** Browsers take a cookie with this prefix only from this host, over TLS, for all paths. Source: RFC 6265bis §4.1.3. */
const prefixOverTls = `__Host-${prefix}`
const maxAgeSeconds = portalSessionHours.max * 3600
/** Most cookies of portal sessions in one browser. Each takes 100 bytes of the headers of every request. */
const maxKept = 8

/**
 * Reads and writes the cookies of portal sessions: each session has one of its own, so that a browser can have the
 * portals of two customers open.
 *
 * A frame is on the site of others, so the cookie is `SameSite=None`, and `Partitioned`, so that browsers that refuse
 * cookies of third parties take it and no other site gets it (CHIPS). Both need `Secure`, which browsers take from a
 * loopback address without TLS too. From any other address without TLS it serves pages that are in no frame.
 */
export type PortalCookies = {
  /** Returns the token of a session. Null: there is none, or there are several. */
  read(req: RouteRequest, sessionId: string): string | null
  /** Returns the values of `Set-Cookie` that have the browser keep the token of a session, and forget the oldest. */
  write(req: RouteRequest, session: { id: string; token: string }): string[]
}

/** @param publicUrl The URL of the service for clients. Null: not known; then the request says whether there is TLS. */
export function createPortalCookies(publicUrl: string | null): PortalCookies {
  const isOverTls = ({ protocol }: RouteRequest) => protocol === 'https' || publicUrl?.startsWith('https:') === true
  const prefixFor = (req: RouteRequest) => (isOverTls(req) ? prefixOverTls : prefix)

  return {
    read(req, sessionId) {
      if (!idPattern('portalSession').test(sessionId)) return null
      const wanted = prefixFor(req) + suffixOf(sessionId)
      const found = cookiesOf(req).filter(([name]) => name === wanted)
      return found.length === 1 ? (found[0]?.[1] ?? null) : null
    },
    write(req, { id, token }) {
      const start = prefixFor(req)
      const isSecure = isOverTls(req) || isLoopbackHost(hostOf(req))
      const place = isSecure ? 'SameSite=None; Secure; Partitioned' : 'SameSite=Lax'
      const cookie = (suffix: string, value: string, seconds: number) =>
        `${start}${suffix}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; ${place}`
      const others = cookiesOf(req)
        .map(([name]) => (name.startsWith(start) ? name.slice(start.length) : ''))
        .filter((suffix) => idSuffix.test(suffix) && suffix !== suffixOf(id))
      // Identifiers sort by the time they were made.
      const forgotten = others.toSorted().slice(0, Math.max(0, others.length + 1 - maxKept))
      return [...forgotten.map((suffix) => cookie(suffix, '', 0)), cookie(suffixOf(id), token, maxAgeSeconds)]
    },
  }
}

function suffixOf(sessionId: string): string {
  return sessionId.slice(idPrefixes.portalSession.length + 1)
}

function cookiesOf({ headers }: RouteRequest): [name: string, value: string][] {
  return (headers.cookie ?? '').split(';').map((pair) => {
    const [name = '', value = ''] = pair.trim().split('=', 2)
    return [name, value]
  })
}

function hostOf(req: RouteRequest): string {
  const url = `http://${req.get('host') ?? ''}`
  return URL.canParse(url) ? new URL(url).hostname : ''
}
