import { sql } from 'kysely'
import { countUpTo } from '../database/bounded-lists.ts'
import type { Handle } from '../database/connection.ts'

/** Returns the number of members of an account: `most` at most. */
export function countMembers(handle: Handle, accountId: string, most: number): Promise<number> {
  return countUpTo(handle, sql`SELECT FROM memberships WHERE account_id = ${accountId}`, most)
}

/** Returns the number of invitations of an account that are neither accepted nor expired: `most` at most. */
export function countOpenInvitations(
  handle: Handle,
  { accountId, now }: { accountId: string; now: Date },
  most: number,
): Promise<number> {
  const open = sql`SELECT FROM user_links WHERE account_id = ${accountId} AND kind = 'invitation' AND expires_at > ${now}`
  return countUpTo(handle, open, most)
}
