import { type Selectable, sql } from 'kysely'
import type { Handle, Trx } from '../database/connection.ts'
import type { ApiKeysTable } from '../database/tables/api-keys.ts'
import type { Author } from '../shared/scope.ts'
import type { KeyMode } from './key-format.ts'

export type KeyRow = Pick<Selectable<ApiKeysTable>, (typeof keyColumns)[number]>

const keyColumns = ['id', 'account_id', 'mode', 'name', 'permissions', 'last_four', 'created_at', 'revoked_at'] as const

export async function insertKey(
  handle: Handle,
  key: {
    id: string
    accountId: string
    mode: KeyMode
    name: string
    permissions: readonly string[]
    hash: Buffer
    lastFour: string
    createdBy: Author['actor']
    at: Date
  },
): Promise<void> {
  await handle
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
      revoked_at: null,
    })
    .execute()
}

/** Returns the keys of one account or of all, oldest first. */
export async function selectKeys(handle: Handle, accountId?: string): Promise<KeyRow[]> {
  return handle
    .selectFrom('api_keys')
    .select(keyColumns)
    .$if(accountId !== undefined, (query) => query.where('account_id', '=', accountId ?? ''))
    .orderBy('id')
    .execute()
}

export async function findKeyByHash(
  handle: Handle,
  hash: Buffer,
): Promise<(Pick<KeyRow, 'id' | 'account_id' | 'mode' | 'permissions' | 'revoked_at'> & StoredHash) | undefined> {
  return handle
    .selectFrom('api_keys')
    .innerJoin('accounts', 'accounts.id', 'api_keys.account_id')
    .select([
      'api_keys.id',
      'api_keys.account_id',
      'api_keys.mode',
      'api_keys.permissions',
      'api_keys.revoked_at',
      'api_keys.secret_hash',
      'accounts.plan',
    ])
    .where('api_keys.secret_hash', '=', hash)
    .executeTakeFirst()
}

type StoredHash = { secret_hash: Buffer; plan: string }

/** Returns a key, locked until `trx` ends. */
export async function lockKey(trx: Trx, id: string): Promise<KeyRow | undefined> {
  return trx.selectFrom('api_keys').select(keyColumns).where('id', '=', id).forUpdate().executeTakeFirst()
}

export async function revokeKey(trx: Trx, id: string, at: Date): Promise<KeyRow> {
  return trx
    .updateTable('api_keys')
    .set({ revoked_at: at })
    .where('id', '=', id)
    .returning(keyColumns)
    .executeTakeFirstOrThrow()
}

/** Deletes a key and returns its last state. */
export async function deleteKey(handle: Handle, id: string): Promise<KeyRow | undefined> {
  return handle.deleteFrom('api_keys').where('id', '=', id).returning(keyColumns).executeTakeFirst()
}

/** Sends a notification when `trx` commits. */
export async function announce(trx: Trx, channel: string, payload: string): Promise<void> {
  await sql`SELECT pg_notify(${channel}, ${payload})`.execute(trx)
}
