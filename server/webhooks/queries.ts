import { type Selectable, sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Webhook } from '../../contract/webhooks.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import type { WebhooksTable } from '../database/tables/webhooks.ts'
import { type HealthRow, healthOfWebhook } from '../deliveries/webhook-health.ts'
import type { Scope } from '../shared/scope.ts'
import { type SealedSecrets, sealedSecretColumns } from '../webhook-delivery/attempt/keyring.ts'
import { isOfCustomer } from '../webhook-delivery/webhook-targets.ts'

export type WebhookRow = Pick<Selectable<WebhooksTable>, (typeof columns)[number]>

/** All columns but the secrets, which are read only to deliver, to test and to rotate. */
const columns = [
  'id',
  'mode',
  'url',
  'events',
  'description',
  'metadata',
  'status',
  'disabled_reason',
  'version',
  'flow',
  'created_at',
  'updated_at',
] as const

export async function insertWebhook(
  handle: Handle,
  webhook: Scope & {
    id: string
    url: string
    events: string[]
    description: string | null
    metadata: Readonly<Record<string, string>>
    secret: Buffer
    at: Date
  },
): Promise<WebhookRow> {
  return handle
    .insertInto('webhooks')
    .values({
      id: webhook.id,
      account_id: webhook.accountId,
      mode: webhook.mode,
      url: webhook.url,
      events: webhook.events,
      description: webhook.description,
      metadata: JSON.stringify(webhook.metadata),
      secret: webhook.secret,
      created_at: webhook.at,
      updated_at: webhook.at,
    })
    .returning(columns)
    .executeTakeFirstOrThrow()
}

/**
 * Returns true if an account has `count` webhooks or more, over both modes. Reads at most `count` entries of one index.
 */
export async function hasWebhooks(handle: Handle, accountId: string, count: number): Promise<boolean> {
  const row = await handle
    .selectFrom('webhooks')
    .select('id')
    .where('account_id', '=', accountId)
    .orderBy('id')
    // A subquery, so that the planner uses the index even without statistics, instead of sorting.
    .offset(sql<number>`(SELECT ${count - 1}::bigint)`)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Returns true if a customer has `count` webhooks or more in the mode. Reads at most `count` entries of one index. */
export async function hasCustomerWebhooks(
  handle: Handle,
  { accountId, mode }: Scope,
  { customer, count }: { customer: string; count: number },
): Promise<boolean> {
  const row = await handle
    .selectFrom('webhooks')
    .select('id')
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .where(isOfCustomer(customer))
    .orderBy('id')
    // As above.
    .offset(sql<number>`(SELECT ${count - 1}::bigint)`)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

function webhooksOf(handle: Handle, { accountId, mode, portal }: Scope) {
  return handle
    .selectFrom('webhooks')
    .select(columns)
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .$if(portal !== undefined, (query) => query.where(isOfCustomer(portal?.customer ?? '')))
}

export async function findWebhook(handle: Handle, scope: Scope, id: string): Promise<WebhookRow | undefined> {
  return webhooksOf(handle, scope).where('id', '=', id).executeTakeFirst()
}

type FindParams = { accountId: string; mode: Mode; id: string; customer: string | null }

const selectWithHealth = prepare<FindParams, WebhookRow & HealthRow>({ name: 'find_webhook_with_health' })`
  SELECT ${{ sql: columns.map((column) => `webhooks.${column}`).join(', ') }}, health.*
  FROM webhooks CROSS JOIN LATERAL (${healthOfWebhook}) health
  WHERE webhooks.id = ${'id'} AND account_id = ${'accountId'} AND mode = ${'mode'}
    AND (${'customer'}::text IS NULL OR metadata ->> 'customer' = ${'customer'})
`

/** Returns a webhook with the health of its deliveries, in one snapshot. */
export async function findWebhookWithHealth(
  handle: Handle,
  { accountId, mode, portal }: Scope,
  id: string,
): Promise<(WebhookRow & HealthRow) | undefined> {
  const [row] = await selectWithHealth(handle, { accountId, mode, id, customer: portal?.customer ?? null })
  return row
}

/** Returns a webhook and locks it, before a change or a deletion in this transaction. Lock it before its deliveries. */
export async function lockWebhook(
  trx: Trx,
  scope: Scope,
  id: string,
  purpose: 'change' | 'delete',
): Promise<WebhookRow | undefined> {
  const query = webhooksOf(trx, scope).where('id', '=', id)
  return (purpose === 'delete' ? query.forUpdate() : query.forNoKeyUpdate()).executeTakeFirst()
}

/**
 * Returns a page of webhooks, the newest first.
 *
 * @param page.after The id that the page starts after.
 */
export async function selectWebhooks(
  handle: Handle,
  scope: Scope,
  page: { after?: string | undefined; limit: number; metadata?: Readonly<Record<string, string>> | undefined },
): Promise<WebhookRow[]> {
  let query = webhooksOf(handle, scope)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  if (page.metadata !== undefined) {
    query = query.where(sql<boolean>`metadata @> ${JSON.stringify(page.metadata)}::jsonb`)
    // Says the same of this pair in the words of its index.
    const { customer } = page.metadata
    if (customer !== undefined) query = query.where(isOfCustomer(customer))
  }
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

export type WebhookUpdate = {
  url: string
  events: string[]
  description: string | null
  metadata: Readonly<Record<string, string>>
  status: Webhook['status']
  disabledReason: Webhook['disabledReason']
  /** True to clear the run of failures. */
  forgiven: boolean
  at: Date
}

export async function updateWebhook(trx: Trx, id: string, update: WebhookUpdate): Promise<WebhookRow> {
  return trx
    .updateTable('webhooks')
    .set({
      url: update.url,
      events: update.events,
      description: update.description,
      metadata: JSON.stringify(update.metadata),
      status: update.status,
      disabled_reason: update.disabledReason,
      ...(update.forgiven ? { failing_since: null, failing_attempts: 0 } : {}),
      updated_at: update.at,
    })
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()
}

/** Returns the secrets of a webhook and locks it, so that concurrent rotations run one after another. */
export async function lockSecrets(
  trx: Trx,
  { accountId, mode, portal }: Scope,
  id: string,
): Promise<SealedSecrets | undefined> {
  return trx
    .selectFrom('webhooks')
    .select(sealedSecretColumns)
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .$if(portal !== undefined, (query) => query.where(isOfCustomer(portal?.customer ?? '')))
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirst()
}

export async function updateSecrets(
  trx: Trx,
  { accountId, mode }: Scope,
  id: string,
  { secrets, at }: { secrets: SealedSecrets; at: Date },
): Promise<WebhookRow> {
  return trx
    .updateTable('webhooks')
    .set({ ...secrets, updated_at: at })
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()
}

export async function deleteWebhook(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('webhooks').where('id', '=', id).execute()
}
