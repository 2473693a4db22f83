import { randomBytes } from 'node:crypto'
import { type EventTypeName, isEventTypeName } from '../../contract/event-types.ts'
import type { Page } from '../../contract/pagination.ts'
import { maxConcurrentCustomerTests } from '../../contract/portal-sessions.ts'
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
import { toHealth } from '../deliveries/webhook-health.ts'
import type { Clock } from '../lib/clock.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { brokenRule, DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { type AddressPolicy, faultOfUrl } from '../webhook-delivery/attempt/address-guard.ts'
import { deletedVersion, type WebhookChanges } from '../webhook-delivery/webhook-changes.ts'
import { nameOfWebhook } from '../webhook-delivery/webhook-targets.ts'
import { webhookChange } from './change.ts'
import { createInFlight } from './in-flight.ts'
import { assertInPortal, metadataInPortal } from './portal.ts'
import {
  deleteWebhook,
  findWebhook,
  findWebhookWithHealth,
  hasCustomerWebhooks,
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
   * `maxPerAccount` webhooks or more, over both modes, or in the portal the customer `maxPerCustomer` in the mode.
   */
  create(handle: Handle, scope: AuthoredScope, webhook: CreateWebhook): Promise<WebhookWithSecret>
  /** Newest first. */
  list(handle: Handle, scope: Scope, query: WebhookListQuery): Promise<Page<Webhook>>
  /** Returns the webhook with its health. */
  get(handle: Handle, scope: Scope, id: string): Promise<Webhook>
  /**
   * Disabling cancels pending deliveries; enabling sends nothing again. Enabling, or a new URL, ends the run of
   * failures. Throws `unavailable` when a webhook is enabled for which more deliveries are still to be canceled than
   * can be in a few seconds.
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
  /** Maximum number of webhooks of a customer, of one mode: a customer with more can make no more in the portal. */
  maxPerCustomer: number
  /** Called with each change, after its commit. */
  webhookChanges: Pick<WebhookChanges, 'tell'>
}

/** Maximum time for canceling what is pending before a webhook is enabled. Milliseconds. */
const cancelingMs = 5_000

export function createWebhookService({
  clock,
  secretBox,
  deliveries,
  addressPolicy,
  maxPerAccount,
  maxPerCustomer,
  webhookChanges,
}: WebhookServiceOptions): WebhookService {
  /** A test is in flight until it is settled, even if its client has disconnected. */
  const testsOfAccount = createInFlight(maxConcurrentTests)
  const testsOfCustomer = createInFlight(maxConcurrentCustomerTests)

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
    const target = { type: 'webhook', id: webhook.id, name: nameOfWebhook(webhook) } as const
    await record(trx, { accountId, at: clock.now(), author, action, target, details: { mode, ...details } })
  }

  async function refuseTooMany(trx: Trx, scope: Scope): Promise<void> {
    const { accountId, portal } = scope
    if (portal !== undefined) {
      const count = maxPerCustomer
      const { customer } = portal
      if (await hasCustomerWebhooks(trx, scope, { customer, count })) throw tooManyOfCustomer(maxPerCustomer)
    }
    if (!(await hasWebhooks(trx, accountId, maxPerAccount))) return
    throw portal === undefined ? tooMany(maxPerAccount) : tooManyInPortal()
  }

  /** Changes a webhook. Returns null when it did not: part of what is pending was canceled, which must be done before. */
  async function change(trx: Trx, scope: AuthoredScope, id: string, patch: UpdateWebhook): Promise<Webhook | null> {
    const row = await lockWebhook(trx, scope, id, 'change')
    if (row === undefined) throw notFound('webhook', id)
    const before = toWebhook(row)
    if (scope.portal !== undefined) assertInPortal(scope.portal, patch, before)
    const { after, changes, forgiven } = webhookChange(before, patch)
    if (changes.length === 0) return toWebhook(row, scope)
    // No delivery becomes pending now, except of a fan-out under way; the worker cancels that one when it claims it.
    if (after.status === 'disabled') await deliveries.cancelPending(trx, id)
    else if (before.status === 'disabled' && (await deliveries.cancelPage(trx, id))) return null
    const updated = await updateWebhook(trx, id, { ...after, forgiven, at: clock.now() })
    if (updated.version !== row.version) tellOnCommit(trx, id, updated.version)
    await audit(trx, scope, before, { action: 'webhook.updated', details: { changes: changes.join(', ') } })
    return toWebhook(updated, scope)
  }

  return {
    async create(handle, scope, given) {
      const { url, events, description = null } = given
      refuseBadUrl(url)
      const { accountId, mode, portal } = scope
      if (portal !== undefined) assertInPortal(portal, given)
      const metadata = portal === undefined ? (given.metadata ?? {}) : metadataInPortal(portal)
      const secret = newSecret()
      const sealed = secretBox.seal(secret)
      return inTransaction(handle, async (trx) => {
        // With the account locked, a concurrent call counts only after this one has inserted.
        await lockAccount(trx, accountId)
        await refuseTooMany(trx, scope)
        const at = clock.now()
        const webhook = { id: newId('webhook', at), url, events, description, metadata, secret: sealed }
        const created = toWebhook(await insertWebhook(trx, { ...webhook, accountId, mode, at }), scope)
        await audit(trx, scope, created, { action: 'webhook.created' })
        return { ...created, secret }
      })
    },
    async list(handle, scope, { limit, cursor, metadata }) {
      if (scope.portal !== undefined && metadata !== undefined) {
        throw brokenRule('query.metadata', 'cannot be given in the portal: it shows the webhooks of one customer')
      }
      const after = decodeCursor('webhook', cursor)
      const rows = await selectWebhooks(handle, scope, { after, limit: limit + 1, metadata })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: (row) => toWebhook(row, scope) })
    },
    async get(handle, scope, id) {
      const row = await findWebhookWithHealth(handle, scope, id)
      if (row === undefined) throw notFound('webhook', id)
      const health = toHealth(row)
      // Webhooks of other customers with the same URL count in these two.
      const shown = scope.portal === undefined ? health : { ...health, limit: null, inFlight: 0 }
      return { ...toWebhook(row, scope), health: shown }
    },
    async update(handle, scope, id, patch) {
      refuseBadUrl(patch.url)
      const since = performance.now()
      do {
        const updated = await inTransaction(handle, (trx) => change(trx, scope, id, patch))
        if (updated !== null) return updated
      } while (performance.now() - since < cancelingMs)
      throw stillCanceling()
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
        return { ...toWebhook(row, scope), secret }
      })
    },
    async test(handle, scope, id, type) {
      const { accountId, mode, portal } = scope
      const customer = portal && testsOfCustomer.enter(`${accountId} ${mode} ${portal.customer}`)
      if (customer === null) throw tooManyTests(`${maxConcurrentCustomerTests} tests of your webhooks are`)
      const account = testsOfAccount.enter(accountId)
      try {
        if (account === null) throw tooManyTests(`${maxConcurrentTests} tests of the account's webhooks are`)
        const row = await findWebhook(handle, scope, id)
        if (row === undefined) throw notFound('webhook', id)
        const webhook = toWebhook(row)
        if (portal !== undefined && type !== undefined) assertInPortal(portal, { events: [type] }, webhook)
        const sampled = type ?? webhook.events[0]
        if (sampled === undefined) {
          throw brokenRule('body.type', 'is needed: this version knows no event type of the webhook')
        }
        return await deliveries.sendTest(handle, scope, id, sampled)
      } finally {
        account?.()
        customer?.()
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

function tooManyInPortal(): DomainError {
  return new DomainError(
    'conflict',
    'No webhook can be added at present: ask the support of the site that shows this page.',
  )
}

function tooManyOfCustomer(limit: number): DomainError {
  const most = limit.toLocaleString('en')
  return new DomainError('conflict', `You have reached the limit of ${most} webhooks: delete one first.`)
}

function stillCanceling(): DomainError {
  return new DomainError(
    'unavailable',
    'What was pending when the webhook was disabled is still being canceled, and would be sent if it were enabled now: try again in a moment.',
    { retryAfterSeconds: 5 },
  )
}

function tooManyTests(running: string): DomainError {
  return new DomainError(
    'rate_limit_exceeded',
    `${running} in flight, which is the most at once: try again when one of them has been answered, which takes about 30 seconds at most.`,
  )
}

/** The whole string is the key of the signatures. */
function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** Returns a webhook as clients see it: in the portal, without the metadata that the account keeps with it. */
function toWebhook(row: WebhookRow, { portal }: Partial<Scope> = {}): Webhook {
  return {
    id: row.id,
    mode: row.mode,
    url: row.url,
    events: row.events.filter(isEventTypeName),
    description: row.description,
    metadata: portal === undefined ? row.metadata : metadataInPortal(portal),
    status: row.status,
    disabledReason: row.disabled_reason,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
