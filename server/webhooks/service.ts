import { randomBytes } from 'node:crypto'
import { type EventTypeName, isEventTypeName } from '../../contract/event-types.ts'
import type { Page } from '../../contract/pagination.ts'
import {
  type CreateWebhook,
  maxConcurrentTests,
  type UpdateWebhook,
  type Webhook,
  type WebhookListQuery,
  type WebhookTestResult,
  type WebhookWithSecret,
} from '../../contract/webhooks.ts'
import { type NewAuditEntry, record } from '../audit-log/record.ts'
import { lockAccount } from '../database/account-lock.ts'
import { afterCommit, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { DeliveryService } from '../deliveries/service.ts'
import type { Clock } from '../lib/clock.ts'
import { addToCount } from '../lib/count-map.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { brokenRule, DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { type AddressPolicy, faultOfUrl } from '../webhook-delivery/attempt/address-guard.ts'
import { deletedVersion, type WebhookChanges } from '../webhook-delivery/webhook-changes.ts'
import { webhookChange } from './change.ts'
import {
  deleteWebhook,
  findWebhook,
  hasWebhooks,
  insertWebhook,
  lockSecrets,
  lockWebhook,
  selectWebhooks,
  updateSecrets,
  updateWebhook,
  type WebhookRow,
} from './queries.ts'
import { rotated } from './rotation.ts'

/**
 * Use cases of webhooks. All throw DomainErrors. Every call is limited to one mode of one account. Once a call has
 * returned a change, this process begins no attempt with the old state.
 */
export type WebhookService = {
  /**
   * Throws `rule_violation` when the operator's settings forbid the URL, and `conflict` when the account has
   * `maxPerAccount` webhooks or more, over both modes.
   */
  create(handle: Handle, scope: AuthoredScope, webhook: CreateWebhook): Promise<WebhookWithSecret>
  /** Newest first. */
  list(handle: Handle, scope: Scope, query: WebhookListQuery): Promise<Page<Webhook>>
  /** Returns the webhook with its health. */
  get(handle: Handle, scope: Scope, id: string): Promise<Webhook>
  /**
   * Disabling cancels pending deliveries; enabling sends nothing again. Enabling, or a new URL, ends the run of
   * failures.
   */
  update(handle: Handle, scope: AuthoredScope, id: string, patch: UpdateWebhook): Promise<Webhook>
  /** Deletes the webhook and cancels its pending deliveries. */
  delete(handle: Handle, scope: AuthoredScope, id: string): Promise<void>
  /** Replaces the secret. A rotated secret also signs `webhook-signature` for 24 hours; at most the latest four do. */
  rotateSecret(handle: Handle, scope: AuthoredScope, id: string): Promise<WebhookWithSecret>
  /**
   * Sends a sample at once, even to a disabled webhook. Throws `rate_limit_exceeded` and sends nothing while
   * `maxConcurrentTests` of the account are in flight in this process.
   *
   * @param type Default: the first subscribed type.
   */
  test(handle: Handle, scope: Scope, id: string, type?: EventTypeName): Promise<WebhookTestResult>
}

export type WebhookServiceOptions = {
  clock: Clock
  secretBox: SecretBox
  deliveries: DeliveryService
  addressPolicy: AddressPolicy
  /** Maximum number of webhooks of an account, over both modes: an event may go to webhooks of both. */
  maxPerAccount: number
  /** Called with each change, after its commit. */
  webhookChanges: Pick<WebhookChanges, 'tell'>
}

export function createWebhookService({
  clock,
  secretBox,
  deliveries,
  addressPolicy,
  maxPerAccount,
  webhookChanges,
}: WebhookServiceOptions): WebhookService {
  /** By account. A test is in flight until it is settled, even if its client has disconnected. */
  const testsInFlight = new Map<string, number>()

  function tellOnCommit(trx: Trx, id: string, version: number): void {
    afterCommit(trx, () => webhookChanges.tell(id, version))
  }

  function refuseBadUrl(url: string | undefined): void {
    const fault = url === undefined ? null : faultOfUrl(url, addressPolicy)
    if (fault !== null) throw brokenRule('body.url', fault)
  }

  type Change = Pick<NewAuditEntry, 'action' | 'details'>

  async function audit(trx: Trx, scope: AuthoredScope, webhook: Webhook, { action, details }: Change): Promise<void> {
    const { accountId, author, mode } = scope
    // Not the URL: its path or query may hold a secret of the endpoint.
    const name = webhook.description ?? new URL(webhook.url).host
    const target = { type: 'webhook', id: webhook.id, name } as const
    await record(trx, { accountId, at: clock.now(), author, action, target, details: { mode, ...details } })
  }

  async function find(handle: Handle, scope: Scope, id: string): Promise<WebhookRow> {
    const row = await findWebhook(handle, scope, id)
    if (row === undefined) throw notFound('webhook', id)
    return row
  }

  return {
    async create(handle, scope, { url, events, description = null, metadata = {} }) {
      refuseBadUrl(url)
      const { accountId, mode } = scope
      const secret = newSecret()
      const sealed = secretBox.seal(secret)
      return inTransaction(handle, async (trx) => {
        // With the account locked, a concurrent call counts only after this one has inserted.
        await lockAccount(trx, accountId)
        if (await hasWebhooks(trx, accountId, maxPerAccount)) throw tooMany(maxPerAccount)
        const at = clock.now()
        const webhook = { id: newId('webhook', at), url, events, description, metadata, secret: sealed }
        const created = toWebhook(await insertWebhook(trx, { ...webhook, accountId, mode, at }))
        await audit(trx, scope, created, { action: 'webhook.created' })
        return { ...created, secret }
      })
    },
    async list(handle, scope, { limit, cursor, metadata }) {
      const after = decodeCursor('webhook', cursor)
      const rows = await selectWebhooks(handle, scope, { after, limit: limit + 1, metadata })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toWebhook })
    },
    async get(handle, scope, id) {
      const row = await find(handle, scope, id)
      return { ...toWebhook(row), health: await deliveries.health(handle, { webhookId: id, flow: row.flow }) }
    },
    async update(handle, scope, id, patch) {
      refuseBadUrl(patch.url)
      return inTransaction(handle, async (trx) => {
        const row = await lockWebhook(trx, scope, id, 'change')
        if (row === undefined) throw notFound('webhook', id)
        const before = toWebhook(row)
        const { after, changes, forgiven } = webhookChange(before, patch)
        if (changes.length === 0) return before
        // No delivery becomes pending now, except of a fan-out under way; the worker cancels that one when it claims
        // it.
        if (after.status === 'disabled') await deliveries.cancelPending(trx, id)
        const updated = await updateWebhook(trx, id, { ...after, forgiven, at: clock.now() })
        if (updated.version !== row.version) tellOnCommit(trx, id, updated.version)
        await audit(trx, scope, before, { action: 'webhook.updated', details: { changes: changes.join(', ') } })
        return toWebhook(updated)
      })
    },
    async delete(handle, scope, id) {
      await inTransaction(handle, async (trx) => {
        const row = await lockWebhook(trx, scope, id, 'delete')
        if (row === undefined) throw notFound('webhook', id)
        await deliveries.cancelPending(trx, id)
        await deleteWebhook(trx, id)
        await audit(trx, scope, toWebhook(row), { action: 'webhook.deleted' })
        tellOnCommit(trx, id, deletedVersion)
      })
    },
    async rotateSecret(handle, scope, id) {
      const secret = newSecret()
      const sealed = secretBox.seal(secret)
      return inTransaction(handle, async (trx) => {
        const before = await lockSecrets(trx, scope, id)
        if (before === undefined) throw notFound('webhook', id)
        const at = clock.now()
        const row = await updateSecrets(trx, scope, id, { secrets: rotated(before, sealed, at), at })
        tellOnCommit(trx, id, row.version)
        await audit(trx, scope, toWebhook(row), { action: 'webhook.secret_rotated' })
        return { ...toWebhook(row), secret }
      })
    },
    async test(handle, scope, id, type) {
      const { accountId } = scope
      if ((testsInFlight.get(accountId) ?? 0) >= maxConcurrentTests) throw tooManyTests()
      addToCount(testsInFlight, accountId, 1)
      try {
        const webhook = toWebhook(await find(handle, scope, id))
        const sampled = type ?? webhook.events[0]
        if (sampled === undefined) {
          throw brokenRule('body.type', 'is needed: this version knows no event type of the webhook')
        }
        return await deliveries.sendTest(handle, scope, id, sampled)
      } finally {
        addToCount(testsInFlight, accountId, -1)
      }
    },
  }
}

function tooMany(limit: number): DomainError {
  const most = limit.toLocaleString('en')
  return new DomainError(
    'conflict',
    `The account has reached its limit of ${most} webhooks, test and live together: delete one first, or ask the operator to raise MAX_WEBHOOKS_PER_ACCOUNT.`,
  )
}

function tooManyTests(): DomainError {
  return new DomainError(
    'rate_limit_exceeded',
    `${maxConcurrentTests} tests of the account's webhooks are in flight, which is the most at once: try again when one of them has been answered, which takes about 30 seconds at most.`,
  )
}

/** The whole string is the key of the signatures. */
function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    mode: row.mode,
    url: row.url,
    events: row.events.filter(isEventTypeName),
    description: row.description,
    metadata: row.metadata,
    status: row.status,
    disabledReason: row.disabled_reason,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
