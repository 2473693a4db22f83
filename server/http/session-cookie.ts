import { sessionDays } from '../../contract/sessions.ts'
import type { RouteRequest } from './route-handler.ts'

const name = 'postern_session'
/** Browsers take a cookie with this prefix only from this host, over TLS, for all paths. Source: RFC 6265bis §4.1.3. */
const nameOverTls = `__Host-${name}`
const maxAgeSeconds = sessionDays.max * 24 * 3600

/** Reads and writes the cookie of the session. */
export type SessionCookie = {
  /** Returns the token of the request. Null: there is none, or there are several. */
  read(req: RouteRequest): string | null
  /** Returns the value of `Set-Cookie` that has the browser keep `token`. Null: that has it forget the session. */
  write(req: RouteRequest, token: string | null): string
}

/** @param publicUrl The URL of the service for clients. Null: not known; then the request says whether there is TLS. */
export function createSessionCookie(publicUrl: string | null): SessionCookie {
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
    write(req, token) {
      const isSecure = isOverTls(req)
      const parts = [
        `${isSecure ? nameOverTls : name}=${token ?? ''}`,
        'Path=/',
        `Max-Age=${token === null ? 0 : maxAgeSeconds}`,
        'HttpOnly',
        'SameSite=Lax',
        ...(isSecure ? ['Secure'] : []),
      ]
      return parts.join('; ')
    },
  }
}
