import { type Selectable, sql } from 'kysely'
import type { PageQuery } from '../../contract/pagination.ts'
import type { Role } from '../../contract/roles.ts'
import type { Db, Handle, Trx } from '../database/connection.ts'
import type { UserSessionsTable } from '../database/tables/users.ts'

export type SessionRow = Selectable<UserSessionsTable>

/*
 * Sessions belong to users, who are of several accounts: these statements name no account, but where one is asked for.
 */

export async function insertSession(trx: Trx, session: SessionRow): Promise<void> {
  await trx.insertInto('user_sessions').values(session).execute()
}

export type FoundSessionRow = SessionRow & {
  user_name: string
  is_operator: boolean
  /** Null: the user is no member of the account that was asked for, or none was. */
  account_id: string | null
  plan: string | null
  role: Role | null
}

/** Returns the session with this hash, and what its user is in `accountId`. */
export async function findSessionByHash(
  handle: Handle,
  { hash, accountId }: { hash: Buffer; accountId: string | null },
): Promise<FoundSessionRow | undefined> {
  return handle
    .selectFrom('user_sessions')
    .innerJoin('users', 'users.id', 'user_sessions.user_id')
    .leftJoin('memberships', (join) =>
      join.onRef('memberships.user_id', '=', 'users.id').on('memberships.account_id', '=', accountId ?? ''),
    )
    .leftJoin('accounts', 'accounts.id', 'memberships.account_id')
    .selectAll('user_sessions')
    .select([
      'users.name as user_name',
      'users.is_operator',
      'memberships.account_id',
      'memberships.role',
      'accounts.plan',
    ])
    .where('token_hash', '=', hash)
    .executeTakeFirst()
}

/** Returns a session of the user, or undefined when it has ended. */
export async function findSession(
  handle: Handle,
  { id, userId }: { id: string; userId: string },
): Promise<SessionRow | undefined> {
  return handle
    .selectFrom('user_sessions')
    .selectAll()
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .executeTakeFirst()
}

/** Tells that a session was used, unless that was told after `since`. */
export async function touchSession(
  handle: Handle,
  { id, at, since, ipAddress }: { id: string; at: Date; since: Date; ipAddress: string },
): Promise<void> {
  await handle
    .updateTable('user_sessions')
    .set({ last_used_at: at, ip_address: ipAddress })
    .where('id', '=', id)
    .where('last_used_at', '<', since)
    .execute()
}

/** The times between which a session has not ended. */
export type Alive = { now: Date; usedSince: Date }

/** Returns the sessions of a user that have not ended, newest first, one more than asked for. */
export async function selectSessions(
  handle: Handle,
  userId: string,
  { limit, after, now, usedSince }: Alive & { limit: PageQuery['limit']; after: string | undefined },
): Promise<SessionRow[]> {
  return handle
    .selectFrom('user_sessions')
    .selectAll()
    .where('user_id', '=', userId)
    .where('expires_at', '>', now)
    .where('last_used_at', '>', usedSince)
    .$if(after !== undefined, (query) => query.where('id', '<', after ?? ''))
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
}

/** Deletes a session of the user. Returns undefined when it is not one. */
export async function deleteSession(
  trx: Trx,
  { id, userId }: { id: string; userId: string },
): Promise<SessionRow | undefined> {
  return trx
    .deleteFrom('user_sessions')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .returningAll()
    .executeTakeFirst()
}

/** Deletes the session with this hash if it is one of the user. */
export async function deleteSessionByHash(trx: Trx, { hash, userId }: { hash: Buffer; userId: string }): Promise<void> {
  await trx.deleteFrom('user_sessions').where('token_hash', '=', hash).where('user_id', '=', userId).execute()
}

/** Deletes the sessions of a user, but for one. Returns how many there were. */
export async function deleteSessions(
  trx: Trx,
  { userId, except }: { userId: string; except: string | null },
): Promise<number> {
  const gone = await trx
    .deleteFrom('user_sessions')
    .where('user_id', '=', userId)
    .where('id', '<>', except ?? '')
    .returning('id')
    .execute()
  return gone.length
}

/** Deletes the oldest sessions of a user, so that `kept` are left. */
export async function deleteOldestSessions(trx: Trx, userId: string, kept: number): Promise<void> {
  await sql`
    DELETE FROM user_sessions WHERE user_id = ${userId} AND id IN (
      SELECT id FROM user_sessions WHERE user_id = ${userId} ORDER BY id DESC OFFSET ${kept}
    )
  `.execute(trx)
}

export async function replaceToken(trx: Trx, id: string, hash: Buffer): Promise<void> {
  await trx.updateTable('user_sessions').set({ token_hash: hash }).where('id', '=', id).execute()
}

/** Deletes sessions and links that have ended, of all users and accounts. */
export async function deleteEnded(db: Db, { now, usedSince }: Alive): Promise<void> {
  await db.deleteFrom('user_sessions').where('expires_at', '<=', now).execute()
  await db.deleteFrom('user_sessions').where('last_used_at', '<=', usedSince).execute()
  await db.deleteFrom('user_links').where('expires_at', '<=', now).execute()
}
