import { type ApiKey, type ApiKeyWithSecret, type CreateApiKey, maxKeys } from '../../contract/api-keys.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { brokenRules, DomainError, notFound } from '../shared/errors.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { handOn, type KeyMaker } from './handing-on.ts'
import type { KeyMode } from './key-format.ts'
import { countKeys, findKey, selectKeyPage } from './queries.ts'
import { type ApiKeyService, type KeyInfo, toApiKey } from './service.ts'

/** Use cases of keys over the API. All throw DomainErrors. Every call is limited to one mode of one account. */
export type AccountKeyService = {
  /**
   * Creates a key that may do no more than `maker`. Throws `rule_violation` where more is asked for, and `conflict` when
   * the account has the most keys, over both modes.
   */
  create(handle: Handle, scope: AuthoredScope, maker: KeyMaker, key: CreateApiKey): Promise<ApiKeyWithSecret>
  /** Newest first. */
  list(handle: Handle, scope: Scope, query: PageQuery): Promise<Page<ApiKey>>
  get(handle: Handle, scope: Scope, id: string): Promise<ApiKey>
  /** Revokes a key in all processes. Keeps the time of an earlier revocation. */
  revoke(handle: Handle, scope: AuthoredScope, id: string): Promise<ApiKey>
  /** Deletes a key, which also revokes it. */
  delete(handle: Handle, scope: AuthoredScope, id: string): Promise<void>
}

export type AccountKeyServiceOptions = { clock: Clock; apiKeys: ApiKeyService }

export function createAccountKeyService({ clock, apiKeys }: AccountKeyServiceOptions): AccountKeyService {
  return {
    async create(handle, { accountId, mode, author }, maker, wanted) {
      const { limits, faults } = handOn(maker, wanted, clock.now())
      if (faults.length > 0) throw brokenRules(faults)
      const { name } = wanted
      const permissions = [...new Set(wanted.permissions)]
      return inTransaction(handle, async (trx) => {
        // With the account locked, a concurrent call counts only after this one has inserted.
        await lockAccount(trx, accountId)
        if ((await countKeys(trx, { accountId, mode })) >= maxKeys) throw tooMany(mode)
        const created = await apiKeys.create(trx, { accountId, mode, name, permissions, limits, author })
        return { ...withoutAccount(created), key: created.key }
      })
    },
    async list(handle, scope, { limit, cursor }) {
      const after = decodeCursor('apiKey', cursor)
      const rows = await selectKeyPage(handle, scope, { after, limit: limit + 1 })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toApiKey })
    },
    async get(handle, scope, id) {
      const row = await findKey(handle, scope, id)
      if (row === undefined) throw notFound('API key', id)
      return toApiKey(row)
    },
    async revoke(handle, scope, id) {
      return withoutAccount(await apiKeys.revoke(handle, id, scope))
    },
    async delete(handle, scope, id) {
      await apiKeys.delete(handle, id, scope)
    },
  }
}

function withoutAccount({ accountId: _, ...key }: KeyInfo): ApiKey {
  return key
}

function tooMany(mode: KeyMode): DomainError {
  return new DomainError(
    'conflict',
    `The account has reached its limit of ${maxKeys} API keys of ${mode} mode: delete one first, such as a revoked or expired one.`,
  )
}
