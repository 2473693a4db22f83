import type { Selectable } from 'kysely'
import type { Handle, Trx } from '../../database/connection.ts'
import type { UserIdentitiesTable } from '../../database/tables/user-identities.ts'

export type IdentityRow = Selectable<UserIdentitiesTable>

/*
 * Links belong to users, who are of several accounts: these statements name no account.
 */

/** Who a person is at an identity provider. Source: OpenID Connect Core 1.0 §5.7. */
export type Subject = { issuer: string; subject: string }

export async function findIdentity(handle: Handle, { issuer, subject }: Subject): Promise<IdentityRow | undefined> {
  return handle
    .selectFrom('user_identities')
    .selectAll()
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
}

/** Returns the links of a user, newest first, one more than asked for. */
export async function selectIdentities(
  handle: Handle,
  userId: string,
  { limit, after }: { limit: number; after?: string | undefined },
): Promise<IdentityRow[]> {
  return handle
    .selectFrom('user_identities')
    .selectAll()
    .where('user_id', '=', userId)
    .$if(after !== undefined, (query) => query.where('id', '<', after ?? ''))
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
}

/** Returns true when the user is linked to the provider. */
export async function isLinked(handle: Handle, { userId, issuer }: { userId: string; issuer: string }) {
  const row = await handle
    .selectFrom('user_identities')
    .select('id')
    .where('user_id', '=', userId)
    .where('issuer', '=', issuer)
    .executeTakeFirst()
  return row !== undefined
}

/** Inserts a link. Returns undefined when the subject or the user is linked already. */
export async function insertIdentity(
  trx: Trx,
  row: Omit<IdentityRow, 'last_used_at'>,
): Promise<IdentityRow | undefined> {
  return trx
    .insertInto('user_identities')
    .values({ ...row, last_used_at: null })
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()
}

/** Tells that a link signed its user in. Returns false when it is gone. */
export async function touchIdentity(trx: Trx, { id, at }: { id: string; at: Date }): Promise<boolean> {
  const row = await trx
    .updateTable('user_identities')
    .set({ last_used_at: at })
    .where('id', '=', id)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Deletes a link of a user. Returns undefined when they have no such link. */
export async function deleteIdentity(
  trx: Trx,
  { id, userId }: { id: string; userId: string },
): Promise<IdentityRow | undefined> {
  return trx
    .deleteFrom('user_identities')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .returningAll()
    .executeTakeFirst()
}

/** Deletes all links of a user. Returns how many there were. */
export async function deleteIdentities(trx: Trx, userId: string): Promise<number> {
  const gone = await trx.deleteFrom('user_identities').where('user_id', '=', userId).returning('id').execute()
  return gone.length
}
