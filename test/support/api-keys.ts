import { type AccountService, createAccountService } from '../../server/accounts/service.ts'
import { type ApiKeyService, createApiKeyService } from '../../server/api-keys/service.ts'
import { type Clock, systemClock } from '../../server/lib/clock.ts'

/** The services that make accounts and keys, past the API. */
export function createKeyServices(clock: Clock = systemClock): { accounts: AccountService; apiKeys: ApiKeyService } {
  const accounts = createAccountService({ clock })
  return { accounts, apiKeys: createApiKeyService({ clock, accounts }) }
}
