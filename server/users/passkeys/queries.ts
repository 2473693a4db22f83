import type { Selectable } from 'kysely'
import type { Db, Handle, Trx } from '../../database/connection.ts'
import type { PasskeysTable } from '../../database/tables/passkeys.ts'
import type { ValidChallenge } from './challenges.ts'

export type PasskeyRow = Selectable<PasskeysTable>

/*
 * Passkeys belong to users, who are of several accounts: these statements name no account.
 */

export async function findPasskeyByCredential(handle: Handle, credentialId: Buffer): Promise<PasskeyRow | undefined> {
  return handle.selectFrom('passkeys').selectAll().where('credential_id', '=', credentialId).executeTakeFirst()
}

/** Returns the passkeys of a user, newest first, one more than asked for. */
export async function selectPasskeys(
  handle: Handle,
  userId: string,
  { limit, after }: { limit: number; after?: string | undefined },
): Promise<PasskeyRow[]> {
  return handle
    .selectFrom('passkeys')
    .selectAll()
    .where('user_id', '=', userId)
    .$if(after !== undefined, (query) => query.where('id', '<', after ?? ''))
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
}

/** A passkey of a user, by their ids. */
export type OwnPasskey = { id: string; userId: string }

/** Reads a passkey and locks it until the transaction ends. Returns undefined when the user has no such passkey. */
export async function lockPasskey(trx: Trx, { id, userId }: OwnPasskey): Promise<PasskeyRow | undefined> {
  return trx
    .selectFrom('passkeys')
    .selectAll()
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .forUpdate()
    .executeTakeFirst()
}

/** Counts the passkeys of a user. They are few. */
export async function countPasskeys(handle: Handle, userId: string): Promise<number> {
  const { count } = await handle
    .selectFrom('passkeys')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export type NewPasskeyRow = Omit<PasskeyRow, 'counter' | 'last_used_at' | 'refused_at'> & { counter: number }

/** Inserts a passkey. Returns undefined when its credential is stored already, for this or another user. */
export async function insertPasskey(trx: Trx, row: NewPasskeyRow): Promise<PasskeyRow | undefined> {
  return trx
    .insertInto('passkeys')
    .values({ ...row, last_used_at: null, refused_at: null })
    .onConflict((conflict) => conflict.column('credential_id').doNothing())
    .returningAll()
    .executeTakeFirst()
}

type PasskeyChanges = Partial<Pick<PasskeyRow, 'name' | 'is_synced' | 'last_used_at' | 'refused_at'>> & {
  counter?: number
}

/** Changes a passkey of a user. Returns undefined when they have no such passkey. */
export async function updatePasskey(
  trx: Trx,
  { id, userId }: OwnPasskey,
  changes: PasskeyChanges,
): Promise<PasskeyRow | undefined> {
  return trx
    .updateTable('passkeys')
    .set(changes)
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .returningAll()
    .executeTakeFirst()
}

/** Deletes a passkey of a user. Returns undefined when they have no such passkey. */
export async function deletePasskey(trx: Trx, { id, userId }: OwnPasskey): Promise<PasskeyRow | undefined> {
  return trx.deleteFrom('passkeys').where('id', '=', id).where('user_id', '=', userId).returningAll().executeTakeFirst()
}

/** Deletes all passkeys of a user. Returns how many there were. */
export async function deletePasskeys(trx: Trx, userId: string): Promise<number> {
  const gone = await trx.deleteFrom('passkeys').where('user_id', '=', userId).returning('id').execute()
  return gone.length
}

/** Uses a challenge up. Returns false when it was used before, also by a request at the same time. */
export async function useChallenge(trx: Trx, { hash, expiresAt }: ValidChallenge): Promise<boolean> {
  const row = await trx
    .insertInto('used_challenges')
    .values({ challenge_hash: hash, expires_at: expiresAt })
    .onConflict((conflict) => conflict.column('challenge_hash').doNothing())
    .returning('challenge_hash')
    .executeTakeFirst()
  return row !== undefined
}

/** Deletes the used challenges that have expired, of all users. */
export async function deleteExpiredChallenges(db: Db, now: Date): Promise<void> {
  await db.deleteFrom('used_challenges').where('expires_at', '<=', now).execute()
}
