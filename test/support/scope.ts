import type { Scope } from '../../server/shared/scope.ts'

/** What a live key of an account is limited to. */
export function live(accountId: string): Scope {
  return { accountId, mode: 'live' }
}

/** What a test key of an account is limited to. */
export function testing(accountId: string): Scope {
  return { accountId, mode: 'test' }
}
