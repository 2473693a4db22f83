import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Handle } from '../database/connection.ts'
import type { Scope } from '../shared/scope.ts'
import { type SealedSecrets, sealedSecretColumns } from './attempt/keyring.ts'

export type WebhookTarget = SealedSecrets & {
  id: string
  mode: Mode
  url: string
  description: string | null
  events: string[]
  status: 'enabled' | 'disabled'
  version: number
  flow: number
}

/** Returns what the audit log calls a webhook. Not the URL: its path or query may hold a secret of the endpoint. */
export function nameOfWebhook({ description, url }: Pick<WebhookTarget, 'description' | 'url'>): string {
  return description ?? new URL(url).host
}

/** Matches webhooks of a customer: those with this value of `customer` in their metadata. In the words of its index. */
export function isOfCustomer(customer: string) {
  return sql<boolean>`webhooks.metadata ->> 'customer' = ${customer}`
}

/**
 * Returns a webhook, or undefined. Mode `both` finds it in either mode, for work that has no API key. `lock` prevents
 * others from changing it until the transaction ends.
 */
export async function findWebhookTarget(
  handle: Handle,
  {
    scope,
    webhookId,
    lock,
  }: { scope: Scope | { accountId: string; mode: 'both' }; webhookId: string; lock?: 'share' | 'change' },
): Promise<WebhookTarget | undefined> {
  const portal = scope.mode === 'both' ? undefined : scope.portal
  return handle
    .selectFrom('webhooks')
    .select(['id', 'mode', 'url', 'description', 'events', ...sealedSecretColumns, 'status', 'version', 'flow'])
    .where('id', '=', webhookId)
    .where('account_id', '=', scope.accountId)
    .$if(scope.mode !== 'both', (query) => query.where('mode', '=', scope.mode as Mode))
    .$if(portal !== undefined, (query) => query.where(isOfCustomer(portal?.customer ?? '')))
    .$if(lock === 'share', (query) => query.forShare())
    .$if(lock === 'change', (query) => query.forNoKeyUpdate())
    .executeTakeFirst()
}

/** Returns up to `limit` enabled webhooks of all accounts with ids above `after`, in order of id. */
export async function enabledWebhooks(
  handle: Handle,
  { after, limit }: { after: string; limit: number },
): Promise<{ id: string; url: string }[]> {
  return handle
    .selectFrom('webhooks')
    .select(['id', 'url'])
    .where('id', '>', after)
    .where('status', '=', 'enabled')
    .orderBy('id')
    .limit(limit)
    .execute()
}
