import { DomainError } from '../shared/errors.ts'
import type { RouteRequest } from './route-handler.ts'

const header = 'x-postern-dashboard'
const safeMethods = ['GET', 'HEAD']

/** Throws `forbidden_origin` for a request that a page of this service did not send. */
export type OwnPagesCheck = (req: RouteRequest) => void

/**
 * Guards requests with a session against pages of others, which the browser sends the cookie for too. A form cannot add
 * a header, and a script of another origin would have to ask for it first (CORS), which is never granted. What changes
 * something must also come from the origin of this service.
 *
 * Source: OWASP Cross-Site Request Forgery Prevention Cheat Sheet; Fetch standard, CORS protocol.
 *
 * @param publicUrl The URL of the service for clients. Null: not known; then its origin is that of each request.
 */
export function createOwnPagesCheck(publicUrl: string | null): OwnPagesCheck {
  const publicOrigin = publicUrl === null ? null : new URL(publicUrl).origin

  return (req) => {
    if (req.headersDistinct[header]?.join() !== '1') {
      throw new DomainError(
        'forbidden_origin',
        'A session is for the dashboard alone: send "X-Postern-Dashboard: 1", or use an API key.',
      )
    }
    if (safeMethods.includes(req.method)) return
    const expected = publicOrigin ?? `${req.protocol}://${req.get('host')}`
    const given = req.headersDistinct.origin
    const isOwn =
      given === undefined ? req.headersDistinct['sec-fetch-site']?.join() === 'same-origin' : given.join() === expected
    if (isOwn) return
    throw new DomainError(
      'forbidden_origin',
      `The request comes from another page than one of this service: open the dashboard at ${expected}.`,
    )
  }
}
