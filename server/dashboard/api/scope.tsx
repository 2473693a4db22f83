import { createContext, type ReactNode, use, useMemo } from 'react'
import type { Permission } from '../../../contract/permissions.ts'
import { type Call, createClient, type Result, type Scope } from './client.ts'

export type Session = Result<'GET /v1/session'>
export type Account = Session['accounts'][number]

type ScopeValue = Scope & {
  session: Session
  account: Account
  /** Calls the API for the account and the mode of the screen. */
  call: Call
  /** Returns the address of a screen of this account and mode, such as `/emails`. */
  path: (screen: string) => string
  /** Whether the role of the user has the permission in this account. */
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
    }),
    [session, account, mode],
  )
  return <ScopeContext value={value}>{children}</ScopeContext>
}

/** Returns what the screen works on. Throws outside of an account. */
export function useScope(): ScopeValue {
  const scope = use(ScopeContext)
  if (scope === null) throw new Error('this is used outside of an account')
  return scope
}
