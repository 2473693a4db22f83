import { type Selectable, sql } from 'kysely'
import type { Grant } from '../../contract/permissions.ts'
import type { Role } from '../../contract/roles.ts'
import type { Db, Handle, Trx } from '../database/connection.ts'
import type { PortalSessionsTable } from '../database/tables/portal-sessions.ts'
import type { Scope } from '../shared/scope.ts'

export type PortalSessionRow = Selectable<PortalSessionsTable>

export async function insertSession(trx: Trx, session: PortalSessionRow): Promise<void> {
  await trx.insertInto('portal_sessions').values(session).execute()
}

/** Who may make sessions at present. */
export type MayMake = {
  /** The roles of users. */
  roles: readonly Role[]
  /** Of each of these lists, a key has at least one grant. */
  grants: readonly (readonly Grant[])[]
}

/** Returns sessions of one mode of an account that have not ended and whose maker may still make one, newest first. */
export async function selectSessions(
  handle: Handle,
  { accountId, mode }: Scope,
  page: { after: string | undefined; customer: string | undefined; limit: number; now: Date; mayMake: MayMake },
): Promise<PortalSessionRow[]> {
  const { roles, grants } = page.mayMake
  return handle
    .selectFrom('portal_sessions')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .where('ends_at', '>', page.now)
    .where(({ and, eb, exists, or, selectFrom }) =>
      or([
        and([
          eb('created_by_type', '=', 'key'),
          exists(
            selectFrom('api_keys')
              .select('api_keys.id')
              .whereRef('api_keys.id', '=', 'portal_sessions.created_by_id')
              .whereRef('api_keys.account_id', '=', 'portal_sessions.account_id')
              .where('api_keys.revoked_at', 'is', null)
              .where((key) =>
                key.or([key('api_keys.expires_at', 'is', null), key('api_keys.expires_at', '>', page.now)]),
              )
              .where((key) => key.and(grants.map((some) => sql<boolean>`api_keys.permissions && ${some}::text[]`))),
          ),
        ]),
        and([
          eb('created_by_type', '=', 'user'),
          exists(
            selectFrom('memberships')
              .select('memberships.user_id')
              .whereRef('memberships.account_id', '=', 'portal_sessions.account_id')
              .whereRef('memberships.user_id', '=', 'portal_sessions.created_by_id')
              .where('memberships.role', 'in', [...roles]),
          ),
        ]),
      ]),
    )
    .$if(page.customer !== undefined, (query) => query.where('customer', '=', page.customer ?? ''))
    .$if(page.after !== undefined, (query) => query.where('id', '<', page.after ?? ''))
    .orderBy('id', 'desc')
    .limit(page.limit)
    .execute()
}

/** Deletes a session. Returns whether it was there. */
export async function deleteSession(handle: Handle, { accountId, mode }: Scope, id: string): Promise<boolean> {
  const gone = await handle
    .deleteFrom('portal_sessions')
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .where('id', '=', id)
    .returning('id')
    .executeTakeFirst()
  return gone !== undefined
}

/**
 * Deletes the oldest sessions of one mode of an account, so that `kept` are left: of one customer, or of all customers.
 * Reads `kept` entries of one index, and those that it deletes.
 */
export async function deleteOldestSessions(
  trx: Trx,
  { accountId, mode }: Scope,
  { customer, kept }: { customer: string | null; kept: number },
): Promise<void> {
  await trx
    .deleteFrom('portal_sessions')
    .where('account_id', '=', accountId)
    .where('id', 'in', (query) =>
      query
        .selectFrom('portal_sessions')
        .select('id')
        .where('account_id', '=', accountId)
        .where('mode', '=', mode)
        .$if(customer !== null, (all) => all.where('customer', '=', customer ?? ''))
        .orderBy('id', 'desc')
        // A subquery, so that the planner uses the index even without statistics, instead of sorting.
        .offset(sql<number>`(SELECT ${kept}::bigint)`),
    )
    .execute()
}

/** Uses the link with this code: gives its session a token. Returns undefined for one that is used, ended or unknown. */
export async function takeCode(
  db: Db,
  { codeHash, tokenHash, now, endsAt }: { codeHash: Buffer; tokenHash: Buffer; now: Date; endsAt: Date },
): Promise<string | undefined> {
  const row = await db
    .updateTable('portal_sessions')
    .set({ code_hash: null, token_hash: tokenHash, opened_at: now, last_used_at: now, ends_at: endsAt })
    .where('code_hash', '=', codeHash)
    .where('ends_at', '>', now)
    .returning('id')
    .executeTakeFirst()
  return row?.id
}

export type FoundSessionRow = PortalSessionRow & {
  plan: string
  /** The permissions of the key that made it. Null: no key made it, or the key is revoked or deleted. */
  key_permissions: string[] | null
  key_expires_at: Date | null
  /** The role in the account of the user who made it. Null: no user made it, or they are no member any more. */
  role: Role | null
}

/** Returns the session with this hash, with the plan of its account and the present permissions of its maker. */
export async function findSessionByHash(handle: Handle, tokenHash: Buffer): Promise<FoundSessionRow | undefined> {
  return handle
    .selectFrom('portal_sessions')
    .innerJoin('accounts', 'accounts.id', 'portal_sessions.account_id')
    .leftJoin('api_keys', (join) =>
      join
        .onRef('api_keys.id', '=', 'portal_sessions.created_by_id')
        .onRef('api_keys.account_id', '=', 'portal_sessions.account_id')
        .on('portal_sessions.created_by_type', '=', 'key')
        .on('api_keys.revoked_at', 'is', null),
    )
    .leftJoin('memberships', (join) =>
      join
        .onRef('memberships.account_id', '=', 'portal_sessions.account_id')
        .onRef('memberships.user_id', '=', 'portal_sessions.created_by_id')
        .on('portal_sessions.created_by_type', '=', 'user'),
    )
    .selectAll('portal_sessions')
    .select([
      'accounts.plan',
      'api_keys.permissions as key_permissions',
      'api_keys.expires_at as key_expires_at',
      'memberships.role',
    ])
    .where('portal_sessions.token_hash', '=', tokenHash)
    .executeTakeFirst()
}

/** Tells that a session was used, unless that was told after `since`. */
export async function touchSession(
  handle: Handle,
  { session, since, now, endsAt }: { session: { accountId: string; id: string }; since: Date; now: Date; endsAt: Date },
): Promise<void> {
  await handle
    .updateTable('portal_sessions')
    .set({ last_used_at: now, ends_at: endsAt })
    .where('account_id', '=', session.accountId)
    .where('id', '=', session.id)
    .where('last_used_at', '<=', since)
    .execute()
}

/** Deletes up to `limit` sessions of all accounts that have ended. Returns how many there were. */
export async function deleteEnded(db: Db, now: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    DELETE FROM portal_sessions WHERE (account_id, id) IN (
      SELECT account_id, id FROM portal_sessions WHERE ends_at <= ${now}
      ORDER BY ends_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
    )
  `.execute(db)
  return Number(numAffectedRows ?? 0n)
}
