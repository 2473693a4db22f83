import { providerMinutes } from '../../contract/identities.ts'
import { sessionDays } from '../../contract/sessions.ts'
import type { RouteRequest } from './route-handler.ts'

/** Reads and writes a cookie that scripts cannot read. */
export type Cookie = {
  /** Returns the value of the request. Null: there is none, or there are several. */
  read(req: RouteRequest): string | null
  /** Returns the value of `Set-Cookie` that has the browser keep `value`. Null: that has it forget the cookie. */
  write(req: RouteRequest, value: string | null): string
}

/** The cookies of the dashboard. */
export type Cookies = {
  /** The token of the session. */
  session: Cookie
  /** The state of a request to the identity provider, while the user is there. */
  pending: Cookie
}

/** @param publicUrl The URL of the service for clients. Null: not known; then the request says whether there is TLS. */
export function createCookies(publicUrl: string | null): Cookies {
  return {
    session: createCookie(publicUrl, { name: 'postern_session', maxAgeSeconds: sessionDays.max * 24 * 3600 }),
    pending: createCookie(publicUrl, { name: 'postern_provider', maxAgeSeconds: providerMinutes * 60 }),
  }
}

function createCookie(
  publicUrl: string | null,
  { name, maxAgeSeconds }: { name: string; maxAgeSeconds: number },
): Cookie {
  /** Browsers take a cookie with this prefix only from this host, over TLS, for all paths. Source: RFC 6265bis §4.1.3. */
  const nameOverTls = `__Host-${name}`
  const isOverTls = ({ protocol }: RouteRequest) => protocol === 'https' || publicUrl?.startsWith('https:') === true

  return {
    read(req) {
      // Over TLS, the other name is not read: any host of the domain could have set it.
      const wanted = isOverTls(req) ? nameOverTls : name
      const found = (req.headers.cookie ?? '').split(';').flatMap((pair) => {
        const [key = '', value = ''] = pair.trim().split('=', 2)
        return key === wanted ? [value] : []
      })
      return found.length === 1 ? (found[0] ?? null) : null
    },
    write(req, value) {
      const isSecure = isOverTls(req)
      const parts = [
        `${isSecure ? nameOverTls : name}=${value ?? ''}`,
        'Path=/',
        `Max-Age=${value === null ? 0 : maxAgeSeconds}`,
        'HttpOnly',
        'SameSite=Lax',
        ...(isSecure ? ['Secure'] : []),
      ]
      return parts.join('; ')
    },
  }
}
