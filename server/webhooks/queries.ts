import { type Selectable, sql } from 'kysely'
import type { Webhook } from '../../contract/webhooks.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { WebhooksTable } from '../database/tables/webhooks.ts'
import type { Scope } from '../shared/scope.ts'
import { type SealedSecrets, sealedSecretColumns } from '../webhook-delivery/attempt/keyring.ts'

export type WebhookRow = Pick<Selectable<WebhooksTable>, (typeof columns)[number]>

/** Without secrets: those are written here and read only by the delivery, and by a rotation. */
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

/** Whether an account has `count` webhooks or more, of both modes. Reads `count` entries of one index at most. */
export async function hasWebhooks(handle: Handle, accountId: string, count: number): Promise<boolean> {
  const row = await handle
    .selectFrom('webhooks')
    .select('id')
    .where('account_id', '=', accountId)
    .orderBy('id')
    // As a subquery, so that a plan without statistics walks the index too, and does not sort what it finds.
    .offset(sql<number>`(SELECT ${count - 1}::bigint)`)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

function webhooksOf(handle: Handle, { accountId, mode }: Scope) {
  return handle.selectFrom('webhooks').select(columns).where('account_id', '=', accountId).where('mode', '=', mode)
}

export async function findWebhook(handle: Handle, scope: Scope, id: string): Promise<WebhookRow | undefined> {
  const [row] = await executePrepared(handle, { name: 'find_webhook' }, webhooksOf(handle, scope).where('id', '=', id))
  return row
}

/** Finds a webhook that this transaction is about to change or to delete. Locked before its deliveries. */
export async function lockWebhook(
  trx: Trx,
  scope: Scope,
  id: string,
  purpose: 'change' | 'delete',
): Promise<WebhookRow | undefined> {
  const query = webhooksOf(trx, scope).where('id', '=', id)
  return (purpose === 'delete' ? query.forUpdate() : query.forNoKeyUpdate()).executeTakeFirst()
}

/** @param page.after The row the page begins behind, newest first. */
export async function selectWebhooks(
  handle: Handle,
  scope: Scope,
  page: { after?: string | undefined; limit: number; metadata?: Readonly<Record<string, string>> | undefined },
): Promise<WebhookRow[]> {
  let query = webhooksOf(handle, scope)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  if (page.metadata !== undefined) {
    query = query.where(sql<boolean>`metadata @> ${JSON.stringify(page.metadata)}::jsonb`)
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
  /** Whether the endpoint gets a clean record: no failures. */
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

/** The secrets of a webhook that this transaction is about to replace: of two at once the second waits. */
export async function lockSecrets(
  trx: Trx,
  { accountId, mode }: Scope,
  id: string,
): Promise<SealedSecrets | undefined> {
  return trx
    .selectFrom('webhooks')
    .select(sealedSecretColumns)
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
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
