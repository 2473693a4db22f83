import { timingSafeEqual } from 'node:crypto'
import type { ApiKey } from '../../contract/api-keys.ts'
import type { Grant } from '../../contract/permissions.ts'
import type { Account, AccountService } from '../accounts/service.ts'
import { record } from '../audit-log/record.ts'
import { afterCommit, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { type Actor, type Author, type AuthoredScope, commandLine } from '../shared/scope.ts'
import { type AddressRange, readRange } from './address-ranges.ts'
import type { KeyLimits } from './handing-on.ts'
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
  /** Default: none. */
  limits?: KeyLimits
  /** Default: the command line. */
  author?: Author
}

/** A key as lists show it, without the secret. */
export type KeyInfo = ApiKey & { accountId: string }

/** A new key. It is shown only once. */
export type CreatedKey = KeyInfo & {
  /** The key itself. It cannot be read again. */
  key: string
}

/** The account and permissions of a request with a key. */
export type AuthenticatedKey = {
  keyId: string
  /** The key. */
  actor: Actor
  accountId: string
  /** The plan of the account. */
  plan: string
  mode: KeyMode
  /** Names of permissions and of permission sets. May include names of a later version. */
  permissions: readonly string[]
  limits: KeyLimits
  /** `limits.allowedAddresses`, read. */
  allowedRanges: readonly AddressRange[]
}

export type FoundKey = AuthenticatedKey & { isRevoked: boolean }

export type FirstAccount = { account: Account; testKey: CreatedKey; liveKey: CreatedKey }

/** The keys of the accounts. Throws DomainErrors. */
export type ApiKeyService = {
  /** Creates a key with whatever it is given. Throws `not_found` when there is no such account. */
  create(handle: Handle, key: NewKey): Promise<CreatedKey>
  /**
   * Returns keys, oldest first, including revoked ones. For the command line.
   *
   * @param accountId Default: the keys of all accounts.
   */
  list(handle: Handle, accountId?: string): Promise<KeyInfo[]>
  /**
   * Revokes a key: in this process before it returns, in all others at once. Keeps the time of an earlier revocation.
   * Throws `not_found`.
   *
   * @param by Default: the command line, for the keys of all accounts.
   */
  revoke(handle: Handle, id: string, by?: AuthoredScope): Promise<KeyInfo>
  /** Deletes a key, which also revokes it. Returns its last state. Throws `not_found`. Otherwise as `revoke`. */
  delete(handle: Handle, id: string, by?: AuthoredScope): Promise<KeyInfo>
  /** Returns the key with this secret, also one that is revoked or expired, or null. */
  findBySecret(handle: Handle, secret: string): Promise<FoundKey | null>
  /**
   * Creates an account with a test key and a live key of full access when there is no account yet. Returns null when
   * there is one. Of concurrent calls in several processes, one creates it.
   */
  ensureFirstAccount(handle: Handle, options: { plan: string }): Promise<FirstAccount | null>
}

export type ApiKeyServiceOptions = {
  clock: Clock
  accounts: AccountService
  /** Called in this process with the id of a key that was revoked or deleted, after the commit. Default: nothing. */
  onEnded?: (keyId: string) => void
}

type Change = {
  action: 'api_key.created' | 'api_key.revoked' | 'api_key.deleted'
  author: Author
  details?: Readonly<Record<string, string>>
}

const unlimited: KeyLimits = { expiresAt: null, allowedAddresses: [] }

export function createApiKeyService({ clock, accounts, onEnded }: ApiKeyServiceOptions): ApiKeyService {
  async function create(handle: Handle, given: NewKey): Promise<CreatedKey> {
    const { accountId, mode, permissions, name, limits = unlimited, author = commandLine } = given
    const key = newKey(mode)
    const secret = { hash: hashOfKey(key), lastFour: lastFourOf(key) }
    return inTransaction(handle, async (trx) => {
      await accounts.assertExists(trx, accountId)
      const at = clock.now()
      const id = newId('apiKey', at)
      const shared = { id, accountId, mode, name, permissions, createdBy: author.actor, at }
      const row = await insertKey(trx, { ...shared, ...limits, ...secret })
      const { expiresAt, allowedAddresses } = limits
      const details = {
        permissions: permissions.join(', '),
        ...(expiresAt !== null && { expiresAt: expiresAt.toISOString() }),
        ...(allowedAddresses.length > 0 && { allowedAddresses: allowedAddresses.join(', ') }),
      }
      await tell(trx, row, { action: 'api_key.created', author, details })
      return { ...toKeyInfo(row), key }
    })
  }

  async function tell(trx: Trx, { id, account_id: accountId, name, mode }: KeyRow, change: Change): Promise<void> {
    const { author, action, details = {} } = change
    const target = { type: 'api_key', id, name } as const
    await record(trx, { accountId, at: clock.now(), author, action, target, details: { mode, ...details } })
  }

  async function lock(trx: Trx, id: string, by: AuthoredScope | undefined): Promise<KeyRow> {
    const row = await lockKey(trx, id, by)
    if (row !== undefined) return row
    throw by === undefined
      ? new DomainError('not_found', `There is no API key with the id "${id}".`)
      : notFound('API key', id)
  }

  /** In the transaction, so that no process keeps using the key. Few keys are revoked, so commits may wait for this. */
  async function announceEnd(trx: Trx, id: string): Promise<void> {
    await announce(trx, keysChannel, id)
    afterCommit(trx, () => onEnded?.(id))
  }

  return {
    create,
    async list(handle, accountId) {
      const rows = await selectKeys(handle, accountId)
      return rows.map(toKeyInfo)
    },
    async revoke(handle, id, by) {
      return inTransaction(handle, async (trx) => {
        const before = await lock(trx, id, by)
        if (before.revoked_at !== null) return toKeyInfo(before)
        const row = await revokeKey(trx, before, clock.now())
        await tell(trx, row, { action: 'api_key.revoked', author: by?.author ?? commandLine })
        await announceEnd(trx, id)
        return toKeyInfo(row)
      })
    },
    async delete(handle, id, by) {
      return inTransaction(handle, async (trx) => {
        const row = await lock(trx, id, by)
        await deleteKey(trx, row)
        await tell(trx, row, { action: 'api_key.deleted', author: by?.author ?? commandLine })
        await announceEnd(trx, id)
        return toKeyInfo(row)
      })
    },
    async findBySecret(handle, secret) {
      const hash = hashOfKey(secret)
      const row = await findKeyByHash(handle, hash)
      if (row === undefined || !timingSafeEqual(row.secret_hash, hash)) return null
      return {
        keyId: row.id,
        actor: { type: 'key', id: row.id, name: row.name },
        accountId: row.account_id,
        plan: row.plan,
        mode: row.mode,
        permissions: row.permissions,
        limits: { expiresAt: row.expires_at, allowedAddresses: row.allowed_addresses },
        allowedRanges: row.allowed_addresses.map(readStored),
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

/** Throws for a range that this version cannot read: leaving it out could allow every address. */
function readStored(text: string): AddressRange {
  const range = readRange(text)
  if (typeof range === 'string') throw new Error(`an API key has an allowed address that cannot be read: ${text}`)
  return range
}

/** Returns a key as the API shows it. */
export function toApiKey(row: KeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    mode: row.mode,
    permissions: row.permissions,
    lastFour: row.last_four,
    createdAt: row.created_at.toISOString(),
    createdBy: { type: row.created_by_type, id: row.created_by_id },
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
    lastUsedFrom: row.last_used_from,
    expiresAt: row.expires_at?.toISOString() ?? null,
    allowedAddresses: row.allowed_addresses,
    revokedAt: row.revoked_at?.toISOString() ?? null,
  }
}

function toKeyInfo(row: KeyRow): KeyInfo {
  return { ...toApiKey(row), accountId: row.account_id }
}
