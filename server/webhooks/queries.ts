import type { Selectable } from 'kysely'
import type { Webhook } from '../../contract/webhooks.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { WebhooksTable } from '../database/tables/webhooks.ts'

export type WebhookRow = Pick<Selectable<WebhooksTable>, (typeof columns)[number]>

/** Secrets are written here, and read only by the delivery. */
const columns = ['id', 'url', 'events', 'description', 'status', 'disabled_reason', 'created_at', 'updated_at'] as const

export async function insertWebhook(
  handle: Handle,
  webhook: {
    id: string
    accountId: string
    url: string
    events: string[]
    description: string | null
    secret: Buffer
    at: Date
  },
): Promise<WebhookRow> {
  return handle
    .insertInto('webhooks')
    .values({
      id: webhook.id,
      account_id: webhook.accountId,
      url: webhook.url,
      events: webhook.events,
      description: webhook.description,
      secret: webhook.secret,
      created_at: webhook.at,
      updated_at: webhook.at,
    })
    .returning(columns)
    .executeTakeFirstOrThrow()
}

function oneWebhook(handle: Handle, accountId: string, id: string) {
  return handle.selectFrom('webhooks').select(columns).where('account_id', '=', accountId).where('id', '=', id)
}

export async function findWebhook(handle: Handle, accountId: string, id: string): Promise<WebhookRow | undefined> {
  const [row] = await executePrepared(handle, { name: 'find_webhook' }, oneWebhook(handle, accountId, id))
  return row
}

/** Finds a webhook that this transaction is about to change or to delete. Locked before its deliveries. */
export async function lockWebhook(
  trx: Trx,
  accountId: string,
  id: string,
  purpose: 'change' | 'delete',
): Promise<WebhookRow | undefined> {
  const query = oneWebhook(trx, accountId, id)
  return (purpose === 'delete' ? query.forUpdate() : query.forNoKeyUpdate()).executeTakeFirst()
}

/** @param page.after The row the page begins behind, newest first. */
export async function selectWebhooks(
  handle: Handle,
  accountId: string,
  page: { after?: string | undefined; limit: number },
): Promise<WebhookRow[]> {
  let query = handle.selectFrom('webhooks').select(columns).where('account_id', '=', accountId)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

export type WebhookUpdate = {
  url: string
  events: string[]
  description: string | null
  status: Webhook['status']
  disabledReason: Webhook['disabledReason']
  /** Whether the endpoint gets a clean record: no failures, no slow lane. */
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
      status: update.status,
      disabled_reason: update.disabledReason,
      ...(update.forgiven ? { failing_since: null, slow: false } : {}),
      updated_at: update.at,
    })
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()
}

/** Puts a new secret in the place of the present one, which becomes the previous one until `previousUntil`. */
export async function replaceSecret(
  handle: Handle,
  accountId: string,
  id: string,
  { secret, previousUntil, at }: { secret: Buffer; previousUntil: Date; at: Date },
): Promise<WebhookRow | undefined> {
  return handle
    .updateTable('webhooks')
    .set((eb) => ({
      previous_secret: eb.ref('secret'),
      previous_secret_expires_at: previousUntil,
      secret,
      updated_at: at,
    }))
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirst()
}

export async function deleteWebhook(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('webhooks').where('id', '=', id).execute()
}
