import { type Selectable, sql } from 'kysely'
import type { Handle, Trx } from '../database/connection.ts'
import type { UsersTable } from '../database/tables/users.ts'

export type UserRow = Selectable<UsersTable>

/*
 * Users and their recovery codes belong to no account: these statements name none.
 */

/** Inserts a user. Returns undefined when there is one with the address. */
export async function insertUser(
  trx: Trx,
  user: { id: string; email: string; name: string; passwordHash: string; at: Date },
): Promise<UserRow | undefined> {
  return trx
    .insertInto('users')
    .values({
      id: user.id,
      email: user.email,
      name: user.name,
      password_hash: user.passwordHash,
      created_at: user.at,
    })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .returningAll()
    .executeTakeFirst()
}

/** @param email In any letter case. */
export async function findUserByEmail(handle: Handle, email: string): Promise<UserRow | undefined> {
  return handle.selectFrom('users').selectAll().where('email', '=', email.toLowerCase()).executeTakeFirst()
}

export async function getUser(handle: Handle, id: string): Promise<UserRow> {
  return handle.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
}

/** Reads a user and locks it until the transaction ends. */
export async function lockUser(trx: Trx, id: string): Promise<UserRow> {
  return trx.selectFrom('users').selectAll().where('id', '=', id).forNoKeyUpdate().executeTakeFirstOrThrow()
}

export async function updateUser(
  trx: Trx,
  id: string,
  changes: Partial<Omit<UserRow, 'id' | 'created_at'>>,
): Promise<UserRow> {
  return trx.updateTable('users').set(changes).where('id', '=', id).returningAll().executeTakeFirstOrThrow()
}

export async function hasUsers(handle: Handle): Promise<boolean> {
  return (await handle.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined
}

export type ListedUserRow = UserRow & { memberships: { accountId: string; role: string }[] }

/** Returns all users with the accounts they are members of, oldest first. */
export async function selectUsers(handle: Handle): Promise<ListedUserRow[]> {
  return handle
    .selectFrom('users')
    .selectAll('users')
    .select(
      sql<ListedUserRow['memberships']>`coalesce((
        SELECT json_agg(json_build_object('accountId', m.account_id, 'role', m.role) ORDER BY m.account_id)
        FROM memberships m WHERE m.user_id = users.id
      ), '[]')`.as('memberships'),
    )
    .orderBy('id')
    .execute()
}

/** Replaces all recovery codes of a user. */
export async function replaceRecoveryCodes(trx: Trx, userId: string, hashes: readonly Buffer[]): Promise<void> {
  await trx.deleteFrom('recovery_codes').where('user_id', '=', userId).execute()
  if (hashes.length === 0) return
  await trx
    .insertInto('recovery_codes')
    .values(hashes.map((code_hash) => ({ user_id: userId, code_hash })))
    .execute()
}

/** Uses a recovery code up. Returns false when the user has no such code. */
export async function takeRecoveryCode(trx: Trx, userId: string, hash: Buffer): Promise<boolean> {
  const row = await trx
    .deleteFrom('recovery_codes')
    .where('user_id', '=', userId)
    .where('code_hash', '=', hash)
    .returning('user_id')
    .executeTakeFirst()
  return row !== undefined
}

/** Returns the number of recovery codes that a user has left: 10 at most. */
export async function countRecoveryCodes(handle: Handle, userId: string): Promise<number> {
  const rows = await handle.selectFrom('recovery_codes').select('user_id').where('user_id', '=', userId).execute()
  return rows.length
}
