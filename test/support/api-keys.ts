import { type KeyPermission, keyPermissions } from '../../contract/permissions.ts'
import { type AccountService, createAccountService } from '../../server/accounts/service.ts'
import { type ApiKeyService, createApiKeyService } from '../../server/api-keys/service.ts'
import type { Db } from '../../server/database/connection.ts'
import { type Clock, systemClock } from '../../server/lib/clock.ts'

/** The services that make accounts and keys, past the API. */
export function createKeyServices(clock: Clock = systemClock): { accounts: AccountService; apiKeys: ApiKeyService } {
  const accounts = createAccountService({ clock })
  return { accounts, apiKeys: createApiKeyService({ clock, accounts }) }
}

/** The account of a test service, in its database. */
type KeyOwner = { database: { db: Db }; accountId: string; clock: Clock }

/** Makes a live key of `accountId` that may do one thing. */
export async function keyThatMay(permission: KeyPermission, owner: KeyOwner): Promise<string> {
  const { apiKeys } = createKeyServices(owner.clock)
  const key = { accountId: owner.accountId, mode: 'live', permissions: [permission], name: permission } as const
  return (await apiKeys.create(owner.database.db, key)).key
}

export type KeysOfOnePermission = Readonly<Record<KeyPermission, string>>

/** Makes one for each permission. Few tests need them, and all of them cost as much as a start of the service. */
export async function keysOfOnePermission(owner: KeyOwner): Promise<KeysOfOnePermission> {
  const made = keyPermissions.map(async (permission) => [permission, await keyThatMay(permission, owner)] as const)
  return Object.fromEntries(await Promise.all(made)) as KeysOfOnePermission
}
