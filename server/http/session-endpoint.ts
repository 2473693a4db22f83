import type { Db } from '../database/connection.ts'
import type { PortalCustomer } from '../portal-sessions/service.ts'
import type { Client, SignedIn } from '../users/sessions.ts'
import { portalCustomerOf, signedInOf } from './caller.ts'
import { clientAddressOf, networkOf } from './client-address.ts'
import type { PortalCookies } from './portal-cookies.ts'
import type { RouteInput, RouteRequest } from './route-handler.ts'
import type { Cookies } from './session-cookie.ts'

/** The context of a request that is about no account. */
export type OpenContext = {
  db: Db
  /** Where the request comes from. */
  client: Client
  /** The token of the session that the request's browser has, not checked. Null: it has none. */
  formerToken: string | null
  /** Has the browser keep the token of a session. Null: has it forget the session. */
  setToken(token: string | null): void
  /** The state of a request to the identity provider from the browser's cookie, not checked. Null: there is none. */
  pending: string | null
  /** Has the browser keep such a state. Null: has it forget the state. */
  setPending(pending: string | null): void
  /** Has the browser keep the token of a portal session. */
  setPortalToken(session: { id: string; token: string }): void
}

type Wrapper<Context> = <Input extends RouteInput, Answer extends { status: number; body: unknown }>(
  handler: (input: Input, context: Context) => Promise<Answer>,
) => (input: Input) => Promise<Answer>

/** Turn use cases of routes that are about no account into route handlers. */
export type SessionEndpoints = {
  /** For routes that need no session. */
  open: Wrapper<OpenContext>
  /** For routes that need a session. */
  signedIn: Wrapper<OpenContext & { signedIn: SignedIn }>
  /** For routes that need a portal session. */
  inPortal: Wrapper<{ portal: PortalCustomer }>
}

type Options = { db: Db; cookies: Cookies; portalCookies: PortalCookies }

export function createSessionEndpoints({ db, cookies, portalCookies }: Options): SessionEndpoints {
  const contextOf = ({ req, res }: RouteInput): OpenContext => ({
    db,
    client: clientOfRequest(req),
    formerToken: cookies.session.read(req),
    setToken: (token) => void res.appendHeader('Set-Cookie', cookies.session.write(req, token)),
    pending: cookies.pending.read(req),
    setPending: (pending) => void res.appendHeader('Set-Cookie', cookies.pending.write(req, pending)),
    setPortalToken: (session) => void res.appendHeader('Set-Cookie', portalCookies.write(req, session)),
  })

  return {
    open: (handler) => (input) => handler(input, contextOf(input)),
    signedIn: (handler) => (input) => {
      const signedIn = signedInOf(input.req)
      if (signedIn === undefined) throw new Error('the request has no session')
      return handler(input, { ...contextOf(input), signedIn })
    },
    inPortal: (handler) => (input) => {
      const portal = portalCustomerOf(input.req)
      if (portal === undefined) throw new Error('the request has no portal session')
      return handler(input, { portal })
    },
  }
}

function clientOfRequest(req: RouteRequest): Client {
  const ipAddress = clientAddressOf(req.ip) ?? ''
  return { ipAddress, network: networkOf(req.ip), userAgent: req.get('user-agent') ?? '' }
}
