import { randomBytes } from 'node:crypto'
import { type EventTypeName, isEventTypeName } from '../../contract/event-types.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import type {
  CreateWebhook,
  UpdateWebhook,
  Webhook,
  WebhookTestResult,
  WebhookWithSecret,
} from '../../contract/webhooks.ts'
import type { Clock } from '../clock.ts'
import { type Handle, inTransaction } from '../database/connection.ts'
import { type AddressPolicy, faultOfUrl } from '../delivery/address-guard.ts'
import type { DeliveryService } from '../delivery/service.ts'
import { DomainError, invalidField, notFound } from '../errors.ts'
import { newId } from '../ids.ts'
import { decodeCursor, pageOfRows } from '../pagination.ts'
import type { SecretBox } from '../secrets.ts'
import { changeOf } from './change.ts'
import {
  deleteWebhook,
  findWebhook,
  insertWebhook,
  lockWebhook,
  replaceSecret,
  selectWebhooks,
  updateWebhook,
  type WebhookRow,
} from './queries.ts'

/** How long the previous secret still signs after a rotation. Milliseconds: 24 hours. */
const previousSecretLifeMs = 24 * 3_600_000

/** Use cases around webhooks. Throws DomainErrors; every call is limited to one account. */
export type WebhookService = {
  /** `validation_error` when the URL leads where the operator lets nothing go. */
  create(handle: Handle, accountId: string, webhook: CreateWebhook): Promise<WebhookWithSecret>
  /** Newest first. */
  list(handle: Handle, accountId: string, query: PageQuery): Promise<Page<Webhook>>
  get(handle: Handle, accountId: string, id: string): Promise<Webhook>
  /**
   * Disabling cancels what is pending; enabling resends nothing. Enabling, or another URL, forgets
   * past failures.
   */
  update(handle: Handle, accountId: string, id: string, patch: UpdateWebhook): Promise<Webhook>
  /** Cancels what is pending. */
  delete(handle: Handle, accountId: string, id: string): Promise<void>
  /** The previous secret also signs `webhook-signature` for 24 hours. */
  rotateSecret(handle: Handle, accountId: string, id: string): Promise<WebhookWithSecret>
  /**
   * Sends a sample at once, also to a disabled webhook.
   *
   * @param type Default: the first subscribed type.
   */
  test(handle: Handle, accountId: string, id: string, type?: EventTypeName): Promise<WebhookTestResult>
}

export type WebhookServiceOptions = {
  clock: Clock
  secretBox: SecretBox
  deliveries: DeliveryService
  addressPolicy: AddressPolicy
}

export function createWebhookService({
  clock,
  secretBox,
  deliveries,
  addressPolicy,
}: WebhookServiceOptions): WebhookService {
  function refuseBadUrl(url: string | undefined): void {
    const fault = url === undefined ? null : faultOfUrl(url, addressPolicy)
    if (fault !== null) throw invalidField('body.url', fault)
  }

  async function get(handle: Handle, accountId: string, id: string): Promise<Webhook> {
    const row = await findWebhook(handle, accountId, id)
    if (row === undefined) throw notFound('webhook', id)
    return toWebhook(row)
  }

  return {
    async create(handle, accountId, { url, events, description = null }) {
      refuseBadUrl(url)
      const at = clock.now()
      const secret = newSecret()
      const row = await insertWebhook(handle, {
        id: newId('webhook', at),
        accountId,
        url,
        events,
        description,
        secret: secretBox.seal(secret),
        at,
      })
      return { ...toWebhook(row), secret }
    },
    async list(handle, accountId, { limit, cursor }) {
      const after = decodeCursor('webhook', cursor)
      const rows = await selectWebhooks(handle, accountId, { after, limit: limit + 1 })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toWebhook })
    },
    get,
    async update(handle, accountId, id, patch) {
      refuseBadUrl(patch.url)
      return inTransaction(handle, async (trx) => {
        const row = await lockWebhook(trx, accountId, id, 'change')
        if (row === undefined) throw notFound('webhook', id)
        const before = toWebhook(row)
        const { after, changed, forgiven } = changeOf(before, patch)
        if (!changed) return before
        // Nothing becomes pending meanwhile but what is being fanned out; that the worker cancels.
        if (after.status === 'disabled') await deliveries.cancelPending(trx, id)
        return toWebhook(await updateWebhook(trx, id, { ...after, forgiven, at: clock.now() }))
      })
    },
    async delete(handle, accountId, id) {
      await inTransaction(handle, async (trx) => {
        const row = await lockWebhook(trx, accountId, id, 'delete')
        if (row === undefined) throw notFound('webhook', id)
        await deliveries.cancelPending(trx, id)
        await deleteWebhook(trx, id)
      })
    },
    async rotateSecret(handle, accountId, id) {
      const at = clock.now()
      const secret = newSecret()
      const row = await replaceSecret(handle, accountId, id, {
        secret: secretBox.seal(secret),
        previousUntil: new Date(at.getTime() + previousSecretLifeMs),
        at,
      })
      if (row === undefined) throw notFound('webhook', id)
      return { ...toWebhook(row), secret }
    },
    async test(handle, accountId, id, type) {
      const webhook = await get(handle, accountId, id)
      const sampled = type ?? webhook.events[0]
      if (sampled === undefined) {
        throw new DomainError('validation_error', 'This version knows no event type of the webhook: give `type`.')
      }
      return deliveries.sendTest(handle, accountId, id, sampled)
    },
  }
}

/** The whole string is the key of the signatures. */
function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    url: row.url,
    events: row.events.filter(isEventTypeName),
    description: row.description,
    status: row.status,
    disabledReason: row.disabled_reason,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
