import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Handle } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
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

type Params = { webhookId: string; accountId: string; mode: Mode | null; customer: string | null }

const columns = ['id', 'mode', 'url', 'description', 'events', ...sealedSecretColumns, 'status', 'version', 'flow']

function prepareTarget(name: string, lock: string) {
  return prepare<Params, WebhookTarget>({ name })`
    SELECT ${{ sql: columns.join(', ') }} FROM webhooks
    WHERE id = ${'webhookId'} AND account_id = ${'accountId'} AND (${'mode'}::text IS NULL OR mode = ${'mode'})
      AND (${'customer'}::text IS NULL OR metadata ->> 'customer' = ${'customer'})
    ${{ sql: lock }}
  `
}

const targets = {
  none: prepareTarget('find_webhook_target', ''),
  share: prepareTarget('share_webhook_target', 'FOR SHARE'),
  change: prepareTarget('lock_webhook_target', 'FOR NO KEY UPDATE'),
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
    lock = 'none',
  }: { scope: Scope | { accountId: string; mode: 'both' }; webhookId: string; lock?: keyof typeof targets },
): Promise<WebhookTarget | undefined> {
  const { accountId } = scope
  const { mode, customer } =
    scope.mode === 'both'
      ? { mode: null, customer: null }
      : { mode: scope.mode, customer: scope.portal?.customer ?? null }
  const [row] = await targets[lock](handle, { webhookId, accountId, mode, customer })
  return row
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
