import { createContext, type ReactNode, use, useMemo } from 'react'
import type { Permission } from '../../../contract/permissions.ts'
import { type ApiError, type Call, createClient, createPortalClient, type Result, type Scope } from './client.ts'
import { checkSession } from './query-client.ts'

export type Session = Result<'GET /v1/session'>
export type Account = Session['accounts'][number]
export type PortalAccess = Result<'GET /v1/portal-session'>

type ScopeValue = Scope & {
  /** Throws in the portal. */
  session: Session
  /** Throws in the portal, and on the screens for operators. */
  account: Account
  /** The customer, the permissions and the theme of the portal. Null: this is the dashboard. */
  portal: PortalAccess | null
  /** Returns the title of the page of a screen. */
  pageTitle: (screen: string) => string
  /** Told of every request that the API refuses, because the session may have ended. */
  onRefused: (error: ApiError) => void
  /** Calls the API for the account and the mode of the screen. */
  call: Call
  /** Returns the address of a screen of this account and mode, such as `/emails`. */
  path: (screen: string) => string
  /** Returns true when the role of the user has the permission in this account. */
  can: (permission: Permission) => boolean
}

const ScopeContext = createContext<ScopeValue | null>(null)

type Props = Pick<ScopeValue, 'session' | 'account' | 'mode'> & { children: ReactNode }

/** Tells the screens inside what they work on. */
export function ScopeProvider({ session, account, mode, children }: Props) {
  const value = useMemo(
    () => ({
      session,
      account,
      mode,
      accountId: account.id,
      call: createClient({ accountId: account.id, mode }),
      path: (screen: string) => `/${account.id}/${mode}${screen}`,
      can: (permission: Permission) => account.permissions.includes(permission),
      portal: null,
      pageTitle: (screen: string) => `${screen} · ${account.name} · Postern`,
      onRefused: checkSession,
    }),
    [session, account, mode],
  )
  return <ScopeContext value={value}>{children}</ScopeContext>
}

/** Tells the screens inside that they are those for operators of the service, and of no account. */
export function OperatorScopeProvider({ session, children }: { session: Session; children: ReactNode }) {
  const value = useMemo(
    () => ({
      session,
      mode: 'live' as const,
      // The name that what was read is kept under.
      accountId: 'operator',
      call: createClient(null),
      path: (screen: string) => `/operator${screen}`,
      // Operators may do all that their screens can.
      can: () => true,
      portal: null,
      pageTitle: (screen: string) => `${screen} · Operator · Postern`,
      onRefused: checkSession,
      get account(): Account {
        throw new Error('the screens for operators are of no account')
      },
    }),
    [session],
  )
  return <ScopeContext value={value}>{children}</ScopeContext>
}

type PortalProps = {
  portal: PortalAccess
  /** The token of its session. Null: its cookie is there. */
  token: string | null
  /** Called when the session has ended. */
  onEnded: () => void
  children: ReactNode
}

/** Tells the screens inside that they are those of the portal, for one customer. */
export function PortalScopeProvider({ portal, token, onEnded, children }: PortalProps) {
  const value = useMemo(
    () => ({
      portal,
      mode: portal.mode,
      // The name that what was read is kept under.
      accountId: portal.id,
      call: createPortalClient({ id: portal.id, token }),
      path: (screen: string) => screen,
      can: (permission: Permission) => portal.permissions.includes(permission),
      pageTitle: (screen: string) => screen,
      onRefused: ({ status }: ApiError) => {
        if (status === 401) onEnded()
      },
      get session(): Session {
        throw outsideOfPortal()
      },
      get account(): Account {
        throw outsideOfPortal()
      },
    }),
    [portal, token, onEnded],
  )
  return <ScopeContext value={value}>{children}</ScopeContext>
}

function outsideOfPortal(): Error {
  return new Error('the portal has no user and shows no account')
}

/** Returns what the screen works on. Throws outside of an account. */
export function useScope(): ScopeValue {
  const scope = use(ScopeContext)
  if (scope === null) throw new Error('this is used outside of an account')
  return scope
}
