import { timingSafeEqual } from 'node:crypto'
import type { Grant } from '../../contract/permissions.ts'
import type { Account, AccountService } from '../accounts/service.ts'
import { record } from '../audit-log/record.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { type Author, commandLine } from '../shared/scope.ts'
import { hashOfKey, type KeyMode, lastFourOf, newKey } from './key-format.ts'
import {
  announce,
  deleteKey,
  findKeyByHash,
  insertKey,
  type KeyRow,
  lockKey,
  revokeKey,
  selectKeys,
} from './queries.ts'

/** Notification channel for the ids of changed keys. All processes then remove the key from their caches. */
export const keysChannel = 'postern_keys'

export type NewKey = {
  accountId: string
  mode: KeyMode
  permissions: readonly Grant[]
  name: string
  /** Default: the command line. */
  author?: Author
}

/** A new key. It is shown only once. */
export type CreatedKey = {
  id: string
  /** The key itself. It cannot be read again. */
  key: string
  mode: KeyMode
  permissions: readonly Grant[]
  name: string
}

/** A key as lists show it, without the secret. */
export type KeyInfo = {
  id: string
  accountId: string
  mode: KeyMode
  name: string
  permissions: readonly string[]
  lastFour: string
  createdAt: string
  revokedAt: string | null
}

/** The account and permissions of a request with a key. */
export type AuthenticatedKey = {
  keyId: string
  accountId: string
  /** The plan of the account. */
  plan: string
  mode: KeyMode
  /** Names of permissions and of permission sets. May include names of a later version. */
  permissions: readonly string[]
}

export type FoundKey = AuthenticatedKey & { isRevoked: boolean }

export type FirstAccount = { account: Account; testKey: CreatedKey; liveKey: CreatedKey }

/** The keys of the accounts. Throws DomainErrors. */
export type ApiKeyService = {
  /** Creates a key. Throws `not_found` when there is no such account. */
  create(handle: Handle, key: NewKey): Promise<CreatedKey>
  /**
   * Returns keys, oldest first, including revoked ones.
   *
   * @param accountId Default: the keys of all accounts.
   */
  list(handle: Handle, accountId?: string): Promise<KeyInfo[]>
  /** Revokes a key in all processes at once. Keeps the time of an earlier revocation. Throws `not_found`. */
  revoke(handle: Handle, id: string): Promise<KeyInfo>
  /**
   * Deletes a key, which also revokes it in all processes at once. Returns its last state. Throws `not_found` when
   * there is no such key.
   */
  delete(handle: Handle, id: string): Promise<KeyInfo>
  /** Returns the key with this secret, revoked or not, or null. */
  findBySecret(handle: Handle, secret: string): Promise<FoundKey | null>
  /**
   * Creates an account with a test key and a live key of full access when there is no account yet. Returns null when
   * there is one. Of concurrent calls in several processes, one creates it.
   */
  ensureFirstAccount(handle: Handle, options: { plan: string }): Promise<FirstAccount | null>
}

export type ApiKeyServiceOptions = { clock: Clock; accounts: AccountService }

export function createApiKeyService({ clock, accounts }: ApiKeyServiceOptions): ApiKeyService {
  async function create(handle: Handle, newKeyOf: NewKey): Promise<CreatedKey> {
    const { accountId, mode, permissions, name, author = commandLine } = newKeyOf
    const at = clock.now()
    const id = newId('apiKey', at)
    const key = newKey(mode)
    await inTransaction(handle, async (trx) => {
      await accounts.assertExists(trx, accountId)
      const secret = { hash: hashOfKey(key), lastFour: lastFourOf(key) }
      await insertKey(trx, { id, accountId, mode, name, permissions, ...secret, createdBy: author.actor, at })
      const details = { mode, permissions: permissions.join(', ') }
      const target = { type: 'api_key', id, name } as const
      await record(trx, { accountId, at, author, action: 'api_key.created', target, details })
    })
    return { id, key, mode, permissions, name }
  }

  async function recordEnd(trx: Trx, row: KeyRow, action: 'api_key.revoked' | 'api_key.deleted'): Promise<void> {
    const target = { type: 'api_key', id: row.id, name: row.name } as const
    const details = { mode: row.mode }
    await record(trx, { accountId: row.account_id, at: clock.now(), author: commandLine, action, target, details })
  }

  return {
    create,
    async list(handle, accountId) {
      const rows = await selectKeys(handle, accountId)
      return rows.map(toKeyInfo)
    },
    async revoke(handle, id) {
      return inTransaction(handle, async (trx) => {
        const before = await lockKey(trx, id)
        if (before === undefined) throw new DomainError('not_found', `There is no API key with the id "${id}".`)
        if (before.revoked_at !== null) return toKeyInfo(before)
        const row = await revokeKey(trx, id, clock.now())
        await recordEnd(trx, row, 'api_key.revoked')
        // In the transaction, so that no process keeps using a revoked key. Revocations are rare enough for this.
        await announce(trx, keysChannel, id)
        return toKeyInfo(row)
      })
    },
    async delete(handle, id) {
      return inTransaction(handle, async (trx) => {
        const row = await deleteKey(trx, id)
        if (row === undefined) throw new DomainError('not_found', `There is no API key with the id "${id}".`)
        await recordEnd(trx, row, 'api_key.deleted')
        await announce(trx, keysChannel, id)
        return toKeyInfo(row)
      })
    },
    async findBySecret(handle, secret) {
      const hash = hashOfKey(secret)
      const row = await findKeyByHash(handle, hash)
      if (row === undefined || !timingSafeEqual(row.secret_hash, hash)) return null
      return {
        keyId: row.id,
        accountId: row.account_id,
        plan: row.plan,
        mode: row.mode,
        permissions: row.permissions,
        isRevoked: row.revoked_at !== null,
      }
    },
    async ensureFirstAccount(handle, { plan }) {
      return inTransaction(handle, async (trx) => {
        const account = await accounts.createFirst(trx, { plan })
        if (account === null) return null
        const permissions = ['full_access'] as const
        const accountId = account.id
        return {
          account,
          testKey: await create(trx, { accountId, mode: 'test', permissions, name: 'First test key' }),
          liveKey: await create(trx, { accountId, mode: 'live', permissions, name: 'First live key' }),
        }
      })
    },
  }
}

function toKeyInfo(row: KeyRow): KeyInfo {
  return {
    id: row.id,
    accountId: row.account_id,
    mode: row.mode,
    name: row.name,
    permissions: row.permissions,
    lastFour: row.last_four,
    createdAt: row.created_at.toISOString(),
    revokedAt: row.revoked_at?.toISOString() ?? null,
  }
}
