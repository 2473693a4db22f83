import {
  type Campaign,
  type CampaignDetails,
  type CampaignRecipient,
  type CampaignRecipientStatus,
  type CampaignStatistics,
  type CampaignStatus,
  type CreateCampaign,
  campaignLimits,
  type UpdateCampaign,
} from '../../contract/campaign-resource.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { EmailService } from '../emails/service.ts'
import type { EmailFault } from '../emails/validate-email.ts'
import type { Clock } from '../lib/clock.ts'
import type { UnsubscribeRef } from '../message/mail-tokens.ts'
import type { Renderer } from '../rendering/renderer.ts'
import { brokenRule, brokenRules, DomainError, invalidRequest, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Scope } from '../shared/scope.ts'
import { figuresOfCampaign } from '../statistics/campaign-figures.ts'
import { hasAudience } from './engine-queries.ts'
import { contentOf, emailTo, faultsOfSize, readCampaign, variablesOf } from './message.ts'
import {
  type CampaignFields,
  type CampaignRow,
  countActive,
  deleteCampaign,
  findCampaign,
  hasWaitingEmails,
  insertCampaign,
  lockCampaign,
  selectCampaigns,
  selectRecipients,
  setDue,
  updateCampaign,
} from './queries.ts'
import { retract } from './retract.ts'
import { type Move, statusAfter, wrongState } from './states.ts'
import { toCampaign, toDetails, toRecipient, toStatistics } from './to-response.ts'

/** Use cases for campaigns. Throws DomainErrors. Every call is limited to one mode of one account. */
export type CampaignService = {
  /** Adds a draft. Throws `validation_error` or `rule_violation` with all errors, and `audience_not_found`. */
  create(handle: Handle, scope: Scope, campaign: CreateCampaign): Promise<CampaignDetails>
  /** Returns campaigns, newest first: see `selectCampaigns`. */
  list(
    handle: Handle,
    scope: Scope,
    query: PageQuery & { status?: CampaignStatus | undefined },
  ): Promise<Page<Campaign>>
  get(handle: Handle, scope: Scope, id: string): Promise<CampaignDetails>
  /** Changes a draft. Throws `campaign_state` for any other, and what `create` throws. */
  update(handle: Handle, scope: Scope, id: string, patch: UpdateCampaign): Promise<CampaignDetails>
  /**
   * Deletes a campaign with its list of recipients. Throws `campaign_state` while it is under way, or emails of it still
   * wait after it was canceled.
   */
  delete(handle: Handle, scope: Scope, id: string): Promise<void>
  /**
   * Starts a draft at a time, or now (null). Throws `rule_violation`, `audience_not_found`, `domain_not_verified`,
   * `public_url_needed`, `campaign_state` and `too_many_campaigns`.
   */
  send(handle: Handle, scope: Scope, id: string, at: Date | null): Promise<Campaign>
  /** Takes what is queued out of the queue, to be made again later. */
  pause(handle: Handle, scope: Scope, id: string): Promise<Campaign>
  resume(handle: Handle, scope: Scope, id: string): Promise<Campaign>
  cancel(handle: Handle, scope: Scope, id: string): Promise<Campaign>
  /** Adds a draft with the same fields. */
  duplicate(handle: Handle, scope: Scope, id: string): Promise<CampaignDetails>
  /** Sends the message to addresses, an email each. Throws `rule_violation` for those that are not written to. */
  test(handle: Handle, scope: Scope, id: string, to: readonly string[]): Promise<string[]>
  /** Returns recipients, newest subscribers first: see `selectRecipients`. */
  recipients(
    handle: Handle,
    scope: Scope,
    id: string,
    query: PageQuery & { status?: CampaignRecipientStatus | undefined },
  ): Promise<Page<CampaignRecipient>>
  statistics(handle: Handle, scope: Scope, id: string): Promise<CampaignStatistics>
}

export type CampaignServiceOptions = {
  clock: Clock
  emails: Pick<EmailService, 'judgeCampaign' | 'sendOfCampaign' | 'takeBack' | 'cancelQueued'>
  renderer: Renderer
  unsubscribeUrl: (ref: UnsubscribeRef) => string
}

const dayMs = 24 * 3_600_000

export function createCampaignService(options: CampaignServiceOptions): CampaignService {
  const { clock, emails, renderer, unsubscribeUrl } = options

  async function find(handle: Handle, scope: Scope, id: string): Promise<CampaignRow> {
    const row = await findCampaign(handle, scope, id)
    if (row === undefined) throw notFound('campaign', id)
    return row
  }

  async function lock(trx: Trx, scope: Scope, id: string): Promise<CampaignRow> {
    const row = await lockCampaign(trx, scope, id)
    if (row === undefined) throw notFound('campaign', id)
    return row
  }

  /** Throws when the fields are not those of an email that can be sent. */
  async function check(handle: Handle, accountId: string, fields: CampaignFields): Promise<void> {
    const large = faultsOfSize(fields, 'body')
    const read = large.length > 0 ? { faults: large } : await readCampaign(fields, { now: clock.now(), path: 'body' })
    if (read.faults !== null) throw refusalOf(read.faults)
    if (!(await hasAudience(handle, accountId, fields.audience_id))) throw noAudience(fields.audience_id)
  }

  /** Moves a campaign and returns it. `what`: such as `paused`. */
  async function move(
    handle: Handle,
    scope: Scope,
    { id, how, what }: { id: string; how: Move; what: string },
  ): Promise<Campaign> {
    return inTransaction(handle, async (trx) => {
      const row = await lock(trx, scope, id)
      const status = statusAfter(how, row.status)
      if (status === null) throw wrongState(id, row.status, what)
      const at = clock.now()
      const ended = status === 'canceled' ? { ended_at: at } : {}
      const key = { accountId: scope.accountId, id }
      const moved = await updateCampaign(trx, key, { status, status_reason: null, updated_at: at, ...ended })
      const left = status === 'sending' ? moved : await retract(trx, emails, moved)
      const isOver = status !== 'sending' && left.queued_count === 0
      await setDue(trx, key, isOver ? null : 0)
      return toCampaign(left)
    })
  }

  return {
    async create(handle, scope, campaign) {
      return inTransaction(handle, async (trx) => {
        const fields = fieldsOf(campaign)
        await check(trx, scope.accountId, fields)
        const at = clock.now()
        return toDetails(await insertCampaign(trx, { id: newId('campaign', at), scope, fields, at }))
      })
    },
    async list(handle, scope, { status, limit, cursor }) {
      const after = decodeCursor('campaign', cursor)
      const { rows, lookedTo } = await selectCampaigns(handle, scope, { status, after, limit: limit + 1 })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toCampaign, lookedTo })
    },
    get: async (handle, scope, id) => toDetails(await find(handle, scope, id)),
    async update(handle, scope, id, patch) {
      return inTransaction(handle, async (trx) => {
        const row = await lock(trx, scope, id)
        if (row.status !== 'draft') throw wrongState(id, row.status, 'changed')
        const fields = changed(row, patch)
        await check(trx, scope.accountId, fields)
        const { metadata, ...columns } = fields
        const change = { ...columns, metadata, updated_at: clock.now() }
        return toDetails(await updateCampaign(trx, { accountId: scope.accountId, id }, change))
      })
    },
    async delete(handle, scope, id) {
      await inTransaction(handle, async (trx) => {
        const { status } = await lock(trx, scope, id)
        const key = { accountId: scope.accountId, id }
        if (status === 'scheduled' || status === 'sending' || status === 'paused') {
          throw wrongState(id, status, 'deleted')
        }
        if (status === 'canceled' && (await hasWaitingEmails(trx, key))) {
          const message = `The campaign "${id}" is canceled, but emails of it are still on their way: they would be sent if it was deleted. Delete it when GET /v1/emails?campaign=${id}&status=sending lists none.`
          throw new DomainError('campaign_state', message)
        }
        await deleteCampaign(trx, key)
      })
    },
    async send(handle, scope, id, at) {
      return inTransaction(handle, async (trx) => {
        await lockAccount(trx, scope.accountId)
        const row = await lock(trx, scope, id)
        const status = statusAfter('send', row.status)
        if (status === null) throw wrongState(id, row.status, 'sent')
        const now = clock.now()
        const fault = at === null ? null : faultOfTime(at, now)
        if (fault !== null) throw brokenRule('body.scheduledAt', fault)
        await check(trx, scope.accountId, row)
        await mustBeSendable(trx, scope, row)
        if ((await countActive(trx, scope.accountId)) >= campaignLimits.active) {
          const message = `The account has ${campaignLimits.active} campaigns that are scheduled, sending or paused, the most there may be. Wait for one to end, or cancel one.`
          throw new DomainError('too_many_campaigns', message)
        }
        const scheduledAt = at ?? now
        const change = { status, scheduled_at: scheduledAt, due_at: scheduledAt, updated_at: now }
        return toCampaign(await updateCampaign(trx, { accountId: scope.accountId, id }, change))
      })
    },
    pause: (handle, scope, id) => move(handle, scope, { id, how: 'pause', what: 'paused' }),
    resume: (handle, scope, id) => move(handle, scope, { id, how: 'resume', what: 'resumed' }),
    cancel: (handle, scope, id) => move(handle, scope, { id, how: 'cancel', what: 'canceled' }),
    async duplicate(handle, scope, id) {
      const fields = await find(handle, scope, id)
      const at = clock.now()
      return toDetails(await insertCampaign(handle, { id: newId('campaign', at), scope, fields: pick(fields), at }))
    },
    async test(handle, scope, id, to) {
      return inTransaction(handle, async (trx) => {
        const row = await find(trx, scope, id)
        await check(trx, scope.accountId, row)
        const made = await makeTests(row, to)
        const results = await emails.sendOfCampaign(trx, scope, made)
        for (const [index, result] of results.entries()) {
          if (result instanceof DomainError) throw result
          if ('withheld' in result) {
            const why =
              result.withheld === 'suppressed' ? 'is on the suppression list' : 'unsubscribed from the audience'
            throw brokenRule(`body.to[${index}]`, why)
          }
        }
        return made.map((one) => one.id)
      })
    },
    async recipients(handle, scope, id, { status, limit, cursor }) {
      const after = decodeCursor('subscriber', cursor)
      const campaign = await find(handle, scope, id)
      const page = { status, isCanceled: campaign.status === 'canceled', after, limit: limit + 1 }
      const { rows, lookedTo } = await selectRecipients(handle, { accountId: scope.accountId, id }, page)
      return pageOfRows(rows, { limit, idOf: (row) => row.subscriber_id, toItem: toRecipient, lookedTo })
    },
    async statistics(handle, scope, id) {
      const row = await find(handle, scope, id)
      const range = {
        since: new Date(row.created_at.getTime() - dayMs),
        until: new Date(clock.now().getTime() + dayMs),
      }
      return toStatistics(row, await figuresOfCampaign(handle, scope, { id, ...range }))
    },
  }

  /** Throws why no email of a campaign may be sent now. */
  async function mustBeSendable(trx: Trx, scope: Scope, row: CampaignRow): Promise<void> {
    const read = await readCampaign(row, { now: clock.now(), path: 'campaign' })
    if (read.email === null) throw refusalOf(read.faults)
    const refusal = await emails.judgeCampaign(trx, scope, { ...read.email, recipients: [] })
    if (refusal !== null) throw refusal
  }

  async function makeTests(row: CampaignRow, to: readonly string[]) {
    const now = clock.now()
    const tests = to.map((text) => ({ text, emailId: newId('email', now) }))
    const reads = await Promise.all(tests.map(({ text }) => readCampaign(row, { now, path: 'body', to: text })))
    const people = reads.map((read, index) => {
      const mailbox = read.email?.recipients[0]
      if (mailbox === undefined) {
        const faults = (read.faults ?? []).map((fault) => ({ ...fault, path: `body.to[${index}]` }))
        throw refusalOf(faults)
      }
      return { id: null, email: mailbox.address, firstName: mailbox.name, lastName: null }
    })
    const renderings = await renderer.render(
      contentOf(row),
      people.map((person, index) =>
        variablesOf(person, {
          campaign: row,
          accountName: '',
          unsubscribeUrl: unsubscribeUrl({
            emailId: tests[index]?.emailId ?? '',
            position: 0,
            accountId: row.account_id,
            address: person.email,
          }),
        }),
      ),
    )
    return Promise.all(
      people.map(async (person, index) => {
        const rendering = renderings[index]
        if (rendering?.status !== 'rendered') {
          throw brokenRule('campaign.content', rendering?.reason ?? 'It was not rendered.')
        }
        const email = await emailTo(person, row, { rendered: rendering.rendered, now })
        if (typeof email === 'string') throw brokenRule('campaign.content', email)
        return { id: tests[index]?.emailId ?? '', campaignId: null, email }
      }),
    )
  }
}

function refusalOf(faults: readonly EmailFault[]): DomainError {
  return faults.some(({ isOfForm }) => isOfForm) ? invalidRequest(faults) : brokenRules(faults)
}

function noAudience(id: string): DomainError {
  return new DomainError('audience_not_found', `There is no audience with the id "${id}" in this account.`, {
    details: [{ path: 'body.audienceId', message: 'must be an audience of the account' }],
  })
}

function faultOfTime(at: Date, now: Date): string | null {
  const aheadMs = at.getTime() - now.getTime()
  if (aheadMs <= 0) return 'must be in the future'
  const { scheduleDays } = campaignLimits
  return aheadMs > scheduleDays * dayMs ? `must be at most ${scheduleDays} days ahead` : null
}

function fieldsOf(campaign: CreateCampaign): CampaignFields {
  return {
    name: campaign.name,
    audience_id: campaign.audienceId,
    sender: campaign.from,
    reply_to: campaign.replyTo ?? [],
    subject: campaign.subject,
    preheader: campaign.content.preheader ?? null,
    html: campaign.content.html ?? null,
    text: campaign.content.text ?? null,
    track_opens: campaign.trackOpens ?? false,
    track_clicks: campaign.trackClicks ?? false,
    tags: [...new Set(campaign.tags)],
    metadata: campaign.metadata ?? {},
    throttle: campaign.throttle ?? null,
    late_start: campaign.lateStart ?? 'send',
  }
}

/** Returns the fields of a campaign alone. */
function pick(row: CampaignRow): CampaignFields {
  return changed(row, {})
}

function changed(row: CampaignRow, patch: UpdateCampaign): CampaignFields {
  const { content } = patch
  return {
    name: patch.name ?? row.name,
    audience_id: patch.audienceId ?? row.audience_id,
    sender: patch.from ?? row.sender,
    reply_to: patch.replyTo ?? row.reply_to,
    subject: patch.subject ?? row.subject,
    preheader: content?.preheader === undefined ? row.preheader : content.preheader,
    html: content?.html === undefined ? row.html : content.html,
    text: content?.text === undefined ? row.text : content.text,
    track_opens: patch.trackOpens ?? row.track_opens,
    track_clicks: patch.trackClicks ?? row.track_clicks,
    tags: patch.tags === undefined ? row.tags : [...new Set(patch.tags)],
    metadata: patch.metadata ?? row.metadata,
    throttle: patch.throttle === undefined ? row.throttle : patch.throttle,
    late_start: patch.lateStart ?? row.late_start,
  }
}
