import { type Selectable, sql } from 'kysely'
import type { Handle, Trx } from '../database/connection.ts'
import type { ApiKeysTable } from '../database/tables/api-keys.ts'
import type { Actor, Scope } from '../shared/scope.ts'
import type { KeyLimits } from './handing-on.ts'
import type { KeyMode } from './key-format.ts'

export type KeyRow = Pick<Selectable<ApiKeysTable>, (typeof keyColumns)[number]>

const keyColumns = [
  'id',
  'account_id',
  'mode',
  'name',
  'permissions',
  'last_four',
  'created_at',
  'created_by_type',
  'created_by_id',
  'last_used_at',
  'last_used_from',
  'expires_at',
  'allowed_addresses',
  'revoked_at',
] as const

export async function insertKey(
  trx: Trx,
  key: KeyLimits & {
    id: string
    accountId: string
    mode: KeyMode
    name: string
    permissions: readonly string[]
    hash: Buffer
    lastFour: string
    createdBy: Actor
    at: Date
  },
): Promise<KeyRow> {
  return trx
    .insertInto('api_keys')
    .values({
      id: key.id,
      account_id: key.accountId,
      mode: key.mode,
      name: key.name,
      permissions: [...key.permissions],
      secret_hash: key.hash,
      last_four: key.lastFour,
      created_at: key.at,
      created_by_type: key.createdBy.type,
      created_by_id: key.createdBy.id,
      expires_at: key.expiresAt,
      allowed_addresses: [...key.allowedAddresses],
      revoked_at: null,
    })
    .returning(keyColumns)
    .executeTakeFirstOrThrow()
}

/** Returns the keys of one account or of all, oldest first. For the command line. */
export async function selectKeys(handle: Handle, accountId?: string): Promise<KeyRow[]> {
  return handle
    .selectFrom('api_keys')
    .select(keyColumns)
    .$if(accountId !== undefined, (query) => query.where('account_id', '=', accountId ?? ''))
    .orderBy('id')
    .execute()
}

/** Returns the keys of one mode of an account with ids below `after`, newest first. */
export async function selectKeyPage(
  handle: Handle,
  { accountId, mode }: Scope,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<KeyRow[]> {
  return handle
    .selectFrom('api_keys')
    .select(keyColumns)
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .$if(after !== undefined, (query) => query.where('id', '<', after ?? ''))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

export async function findKey(handle: Handle, { accountId, mode }: Scope, id: string): Promise<KeyRow | undefined> {
  return handle
    .selectFrom('api_keys')
    .select(keyColumns)
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('mode', '=', mode)
    .executeTakeFirst()
}

/** Returns the number of keys of an account in one mode. */
export async function countKeys(trx: Trx, { accountId, mode }: { accountId: string; mode: KeyMode }): Promise<number> {
  const { count } = await trx
    .selectFrom('api_keys')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Returns what a request with a key needs to know of it, of any account. */
export async function findKeyByHash(handle: Handle, hash: Buffer) {
  return handle
    .selectFrom('api_keys')
    .innerJoin('accounts', 'accounts.id', 'api_keys.account_id')
    .select([
      'api_keys.id',
      'api_keys.name',
      'api_keys.account_id',
      'api_keys.mode',
      'api_keys.permissions',
      'api_keys.expires_at',
      'api_keys.allowed_addresses',
      'api_keys.revoked_at',
      'api_keys.secret_hash',
      'accounts.plan',
    ])
    .where('api_keys.secret_hash', '=', hash)
    .executeTakeFirst()
}

/**
 * Returns a key, locked until `trx` ends.
 *
 * @param scope Default: the keys of all accounts, for the command line.
 */
export async function lockKey(trx: Trx, id: string, scope?: Scope): Promise<KeyRow | undefined> {
  return trx
    .selectFrom('api_keys')
    .select(keyColumns)
    .where('id', '=', id)
    .$if(scope !== undefined, (query) =>
      query.where('account_id', '=', scope?.accountId ?? '').where('mode', '=', scope?.mode ?? 'test'),
    )
    .forUpdate()
    .executeTakeFirst()
}

export async function revokeKey(trx: Trx, { id, account_id }: KeyRow, at: Date): Promise<KeyRow> {
  return trx
    .updateTable('api_keys')
    .set({ revoked_at: at })
    .where('account_id', '=', account_id)
    .where('id', '=', id)
    .returning(keyColumns)
    .executeTakeFirstOrThrow()
}

export async function deleteKey(trx: Trx, { id, account_id }: KeyRow): Promise<void> {
  await trx.deleteFrom('api_keys').where('account_id', '=', account_id).where('id', '=', id).execute()
}

/** A use of a key. */
export type KeyUse = { accountId: string; keyId: string; at: Date; from: string | null }

/**
 * Writes the last uses of keys of several accounts. A later use that another process has written stays. Keys that are
 * locked, because they are being revoked or written by another process, are left out: nothing waits.
 */
export async function updateLastUses(handle: Handle, uses: readonly KeyUse[]): Promise<void> {
  await sql`
    WITH used AS (
      SELECT k.account_id, k.id, u.at, u.address
      FROM unnest(
        ${uses.map(({ accountId }) => accountId)}::text[], ${uses.map(({ keyId }) => keyId)}::text[],
        ${uses.map(({ at }) => at)}::timestamptz[], ${uses.map(({ from }) => from)}::text[]
      ) AS u (account_id, id, at, address)
      JOIN api_keys k ON k.account_id = u.account_id AND k.id = u.id
      WHERE k.last_used_at IS NULL OR k.last_used_at < u.at
      FOR NO KEY UPDATE OF k SKIP LOCKED
    )
    UPDATE api_keys SET last_used_at = used.at, last_used_from = used.address
    FROM used WHERE api_keys.account_id = used.account_id AND api_keys.id = used.id
  `.execute(handle)
}

/** Sends a notification when `trx` commits. */
export async function announce(trx: Trx, channel: string, payload: string): Promise<void> {
  await sql`SELECT pg_notify(${channel}, ${payload})`.execute(trx)
}
