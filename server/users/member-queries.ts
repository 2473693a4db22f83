import type { Selectable } from 'kysely'
import type { Role } from '../../contract/roles.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { MembershipsTable, UsersTable } from '../database/tables/users.ts'

export type MemberRow = Selectable<MembershipsTable> &
  Pick<Selectable<UsersTable>, 'name' | 'email' | 'totp_confirmed_at' | 'last_signed_in_at' | 'email_verified_at'>

function members(handle: Handle, accountId: string) {
  return handle
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.user_id')
    .selectAll('memberships')
    .select([
      'users.name',
      'users.email',
      'users.totp_confirmed_at',
      'users.last_signed_in_at',
      'users.email_verified_at',
    ])
    .where('memberships.account_id', '=', accountId)
}

/** Returns members in the order of their users, one more than asked for. */
export async function selectMembers(
  handle: Handle,
  accountId: string,
  { limit, after }: { limit: number; after: string | undefined },
): Promise<MemberRow[]> {
  return members(handle, accountId)
    .$if(after !== undefined, (query) => query.where('memberships.user_id', '>', after ?? ''))
    .orderBy('memberships.user_id')
    .limit(limit + 1)
    .execute()
}

export async function findMember(
  handle: Handle,
  { accountId, userId }: { accountId: string; userId: string },
): Promise<MemberRow | undefined> {
  return members(handle, accountId).where('memberships.user_id', '=', userId).executeTakeFirst()
}

export async function findMemberByEmail(
  handle: Handle,
  { accountId, email }: { accountId: string; email: string },
): Promise<MemberRow | undefined> {
  return members(handle, accountId).where('users.email', '=', email.toLowerCase()).executeTakeFirst()
}

export async function hasOtherOwner(
  trx: Trx,
  { accountId, userId }: { accountId: string; userId: string },
): Promise<boolean> {
  const row = await trx
    .selectFrom('memberships')
    .select('user_id')
    .where('account_id', '=', accountId)
    .where('role', '=', 'owner')
    .where('user_id', '<>', userId)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Makes a user a member. Returns false when they are one already, whose role stays. */
export async function insertMember(
  trx: Trx,
  { accountId, userId, role, at }: { accountId: string; userId: string; role: Role; at: Date },
): Promise<boolean> {
  const row = await trx
    .insertInto('memberships')
    .values({ account_id: accountId, user_id: userId, role, created_at: at })
    .onConflict((conflict) => conflict.columns(['account_id', 'user_id']).doNothing())
    .returning('user_id')
    .executeTakeFirst()
  return row !== undefined
}

export async function updateRole(
  trx: Trx,
  { accountId, userId, role }: { accountId: string; userId: string; role: Role },
): Promise<void> {
  await trx
    .updateTable('memberships')
    .set({ role })
    .where('account_id', '=', accountId)
    .where('user_id', '=', userId)
    .execute()
}

export async function deleteMember(
  trx: Trx,
  { accountId, userId }: { accountId: string; userId: string },
): Promise<void> {
  await trx.deleteFrom('memberships').where('account_id', '=', accountId).where('user_id', '=', userId).execute()
}

export type AccountOfUserRow = { id: string; name: string; plan: string; role: Role }

/** Returns the accounts of a user, oldest first. */
export async function selectAccountsOf(handle: Handle, userId: string): Promise<AccountOfUserRow[]> {
  return handle
    .selectFrom('memberships')
    .innerJoin('accounts', 'accounts.id', 'memberships.account_id')
    .select(['accounts.id', 'accounts.name', 'accounts.plan', 'memberships.role'])
    .where('memberships.user_id', '=', userId)
    .orderBy('accounts.id')
    .execute()
}
