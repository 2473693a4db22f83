import { isDeepStrictEqual } from 'node:util'
import {
  type Campaign,
  type CampaignDetails,
  type CampaignRecipient,
  type CampaignRecipientStatus,
  type CampaignStatus,
  type CreateCampaign,
  campaignLimits,
  type RenderCampaign,
  type UpdateCampaign,
} from '../../contract/campaign-resource.ts'
import type { CampaignStatistics } from '../../contract/campaign-statistics.ts'
import type { TestCampaign } from '../../contract/campaigns.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import type { TemplatePreview } from '../../contract/templates.ts'
import { type NewAuditEntry, record } from '../audit-log/record.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { EmailService } from '../emails/service.ts'
import type { Clock } from '../lib/clock.ts'
import type { MessagePageRef, UnsubscribeRef } from '../message/mail-tokens.ts'
import { brokenRules, DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { reportOfCampaign } from '../statistics/campaign-figures.ts'
import { findProperties } from '../subscribers/properties.ts'
import { markupOf } from '../templates/mjml.ts'
import { subjectsOfPublished } from '../templates/published.ts'
import type { RendererTurns } from '../templates/renderer-turns.ts'
import { readAbTest, type WrittenAbTest } from './ab-test.ts'
import { createChecks } from './checks.ts'
import { chooseWinner } from './choose-winner.ts'
import { type Compiled, changed, changedAnyTime, fieldsOf, fieldsOfDuplicate } from './fields.ts'
import { faultsOfMarkup, isSameContent } from './message.ts'
import { withVariant } from './named-variant.ts'
import { previewOfCampaign } from './preview.ts'
import {
  type CampaignFields,
  type CampaignRow,
  type CampaignSummary,
  countActive,
  deleteCampaign,
  findCampaign,
  hasWaitingEmails,
  hideCampaign,
  insertCampaign,
  lockCampaign,
  selectCampaigns,
  selectRecipients,
  setDue,
  updateCampaign,
} from './queries.ts'
import { exportRecipients } from './recipient-export.ts'
import { retract } from './retract.ts'
import { type StartTime, startOf } from './start-time.ts'
import { type Move, statusAfter, wrongState } from './states.ts'
import { deferredOf, toStatistics } from './statistics.ts'
import { addresseesOf, sendTests } from './test-messages.ts'
import { type ArchiveUrl, createToResponse, toRecipient } from './to-response.ts'
import { replaceVariantContents, selectVariants, type Variant, variantsOfDuplicate } from './variants.ts'

/** Use cases for campaigns. Throws DomainErrors. Every call is limited to one mode of one account. */
export type CampaignService = {
  /**
   * Adds a draft. Throws `validation_error` or `rule_violation` with all errors, `template_not_found`,
   * `audience_not_found` and `segment_invalid`.
   */
  create(handle: Handle, scope: Scope, campaign: CreateCampaign): Promise<CampaignDetails>
  /** Returns campaigns, newest first: see `selectCampaigns`. */
  list(
    handle: Handle,
    scope: Scope,
    query: PageQuery & { status?: CampaignStatus | undefined },
  ): Promise<Page<Campaign>>
  get(handle: Handle, scope: Scope, id: string): Promise<CampaignDetails>
  /**
   * Changes a draft, or only `archive` in any state. Throws `campaign_state` for anything else, and what `create` throws.
   */
  update(handle: Handle, scope: Scope, id: string, patch: UpdateCampaign): Promise<CampaignDetails>
  /**
   * Deletes a campaign at once for readers, and its list of recipients later, in steps. Throws `campaign_state` while
   * it is under way, and when it was canceled and emails of it still wait.
   */
  delete(handle: Handle, scope: AuthoredScope, id: string): Promise<void>
  /**
   * Starts a draft at a time, for each person at a local time, or now (null), with the published version of its
   * template. Throws what `create` throws, `template_fault`, `domain_not_verified`, `public_url_needed`,
   * `campaign_state` and `too_many_campaigns`.
   */
  send(handle: Handle, scope: AuthoredScope, id: string, when: StartTime): Promise<Campaign>
  /** Takes what is queued out of the queue, to be made again later. */
  pause(handle: Handle, scope: AuthoredScope, id: string): Promise<Campaign>
  resume(handle: Handle, scope: AuthoredScope, id: string): Promise<Campaign>
  cancel(handle: Handle, scope: AuthoredScope, id: string): Promise<Campaign>
  /**
   * Has the rest of a campaign get a variant of its A/B test, once everybody in the test was written to. Choosing the same
   * again changes nothing. Throws `rule_violation` for an unknown variant, and `campaign_state`.
   */
  chooseWinner(handle: Handle, scope: AuthoredScope, id: string, variant: string): Promise<Campaign>
  /** Adds a draft with the same fields. Of a template that is deleted, it gets what was copied. */
  duplicate(handle: Handle, scope: Scope, id: string): Promise<CampaignDetails>
  /**
   * Sends the message to test addresses, one email for each. Throws `rule_violation` when an address is suppressed or
   * has unsubscribed, and when there is no subscriber with the id `subscriberId`.
   */
  test(handle: Handle, scope: Scope, id: string, test: TestCampaign): Promise<string[]>
  /**
   * Renders the message, or content that is not stored, for one person. Throws `rule_violation` when there is no
   * subscriber with the id `subscriberId`, and `template_not_found`.
   */
  render(handle: Handle, scope: Scope, id: string, request: RenderCampaign): Promise<TemplatePreview>
  /** Returns recipients, newest subscribers first: see `selectRecipients`. */
  recipients(
    handle: Handle,
    scope: Scope,
    id: string,
    query: PageQuery & { status?: CampaignRecipientStatus | undefined },
  ): Promise<Page<CampaignRecipient>>
  /** Returns all recipients as CSV: see `exportRecipients`. */
  exportRecipients(handle: Handle, scope: Scope, id: string): Promise<AsyncGenerator<string>>
  statistics(handle: Handle, scope: Scope, id: string): Promise<CampaignStatistics>
}

export type CampaignServiceOptions = {
  clock: Clock
  emails: Pick<EmailService, 'judgeCampaign' | 'sendOfAccount' | 'takeBack' | 'cancelQueued'>
  rendererOf: RendererTurns
  /** Returns true when the last check of a domain of the account found no DMARC record. */
  lacksDmarc: (handle: Handle, accountId: string, domainName: string) => Promise<boolean>
  unsubscribeUrl: (ref: UnsubscribeRef) => string
  /** Returns the link with which a recipient reads the message in a browser. */
  webUrl: (ref: MessagePageRef) => string
  /** Returns the address of the page of a campaign for everybody. */
  archiveUrl: ArchiveUrl
}

/** Where content stands in a request. */
const inContent = { path: 'body.content' }

const dayMs = 24 * 3_600_000

export function createCampaignService(options: CampaignServiceOptions): CampaignService {
  const { clock, emails, rendererOf, lacksDmarc, unsubscribeUrl, webUrl } = options
  const { toCampaign, toDetails } = createToResponse(options.archiveUrl)
  const checks = createChecks(options)

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

  async function detailsOf(handle: Handle, row: CampaignRow): Promise<CampaignDetails> {
    return toDetails(row, await selectVariants(handle, row))
  }

  /** Returns what of a request has MJML in it, compiled. */
  async function compile(scope: Scope, { content, abTest }: UpdateCampaign): Promise<Compiled> {
    const renderer = rendererOf(scope.accountId)
    const faults = faultsOfMarkup(content ?? {}, inContent.path)
    return {
      markup: faults.length > 0 ? (before) => before : await markupOf(renderer, content ?? {}, inContent),
      faults,
      abTest: abTest && (await readAbTest(renderer, abTest)),
    }
  }

  async function add(
    trx: Trx,
    scope: Scope,
    { fields, variants }: { fields: CampaignFields; variants: readonly Variant[] },
  ): Promise<CampaignDetails> {
    const at = clock.now()
    const row = await insertCampaign(trx, { id: newId('campaign', at), scope, fields, at })
    await replaceVariantContents(trx, { accountId: scope.accountId, id: row.id }, variants)
    return toDetails(row, variants)
  }

  /** Gives drafts the subjects that their templates have now. */
  async function withSubjects<Row extends CampaignSummary>(
    handle: Handle,
    accountId: string,
    rows: readonly Row[],
  ): Promise<Row[]> {
    const ids = rows.flatMap((row) => (isOfTemplate(row) ? [row.template_id] : []))
    const subjects = await subjectsOfPublished(handle, accountId, ids)
    return rows.map((row) =>
      isOfTemplate(row) ? { ...row, subject: subjects.get(row.template_id) ?? row.subject } : row,
    )
  }

  async function audit(
    trx: Trx,
    { accountId, author, mode }: AuthoredScope,
    { id, name }: Pick<CampaignRow, 'id' | 'name'>,
    { action, details }: Pick<NewAuditEntry, 'action' | 'details'>,
  ): Promise<void> {
    const target = { type: 'campaign', id, name } as const
    await record(trx, { accountId, at: clock.now(), author, action, target, details: { mode, ...details } })
  }

  /** Moves a campaign and returns it. */
  async function move(
    handle: Handle,
    scope: AuthoredScope,
    { id, how, what }: { id: string; how: Move; what: 'paused' | 'resumed' | 'canceled' },
  ): Promise<Campaign> {
    return inTransaction(handle, async (trx) => {
      const row = await lock(trx, scope, id)
      const status = statusAfter(how, row.status)
      if (status === null) throw wrongState(id, row.status, what)
      const at = clock.now()
      const ended = status === 'canceled' ? { ended_at: at, listed_segments: null } : {}
      const key = { accountId: scope.accountId, id }
      const moved = await updateCampaign(trx, key, {
        status,
        status_reason: null,
        failed_turns: 0,
        updated_at: at,
        ...ended,
      })
      const left = status === 'sending' ? moved : await retract(trx, emails, moved)
      const isOver = status !== 'sending' && left.queued_count === 0
      await setDue(trx, key, isOver ? null : 0)
      await audit(trx, scope, row, { action: `campaign.${what}` })
      return toCampaign(left)
    })
  }

  return {
    async create(handle, scope, campaign) {
      const compiled = await compile(scope, campaign)
      return inTransaction(handle, async (trx) => {
        const written = fieldsOf(campaign, compiled)
        const variants = variantsOf(compiled.abTest ?? null)
        const { content } = await checks.check(trx, scope.accountId, { ...written, variants })
        return add(trx, scope, { fields: { ...written.fields, subject: content.subject }, variants })
      })
    },
    async list(handle, scope, { status, limit, cursor }) {
      const after = decodeCursor('campaign', cursor)
      const { rows, lookedTo } = await selectCampaigns(handle, scope, { status, after, limit: limit + 1 })
      const shown = await withSubjects(handle, scope.accountId, rows)
      return pageOfRows(shown, { limit, idOf: (row) => row.id, toItem: toCampaign, lookedTo })
    },
    async get(handle, scope, id) {
      const [row] = await withSubjects(handle, scope.accountId, [await find(handle, scope, id)])
      if (row === undefined) throw notFound('campaign', id)
      return detailsOf(handle, row)
    },
    async update(handle, scope, id, patch) {
      const compiled = await compile(scope, patch)
      return inTransaction(handle, async (trx) => {
        const row = await lock(trx, scope, id)
        const key = { accountId: scope.accountId, id }
        const anyTime = changedAnyTime(patch)
        if (row.status !== 'draft') {
          if (anyTime === null) throw wrongState(id, row.status, 'changed')
          return detailsOf(trx, await updateCampaign(trx, key, { ...anyTime, updated_at: clock.now() }))
        }
        const written = changed(row, patch, compiled)
        const { abTest } = compiled
        const variants = abTest === undefined ? await selectVariants(trx, row) : variantsOf(abTest)
        const { content } = await checks.check(trx, scope.accountId, { ...written, variants })
        if (abTest !== undefined) await replaceVariantContents(trx, key, variants)
        const change = { ...written.fields, subject: content.subject, updated_at: clock.now() }
        return toDetails(await updateCampaign(trx, key, change), variants)
      })
    },
    async delete(handle, scope, id) {
      await inTransaction(handle, async (trx) => {
        const row = await lock(trx, scope, id)
        const { status, listed_at: listedAt } = row
        const key = { accountId: scope.accountId, id }
        if (status === 'scheduled' || status === 'sending' || status === 'paused') {
          throw wrongState(id, status, 'deleted')
        }
        if (status === 'canceled' && (await hasWaitingEmails(trx, key))) {
          const message = `The campaign "${id}" is canceled, but emails of it are still on their way: they would be sent if it was deleted. Delete it when GET /v1/emails?campaign=${id} lists none with the status queued or sending.`
          throw new DomainError('campaign_state', message)
        }
        if (listedAt === null) await deleteCampaign(trx, key)
        else await hideCampaign(trx, key, clock.now())
        await audit(trx, scope, row, { action: 'campaign.deleted' })
      })
    },
    async send(handle, scope, id, when) {
      // Before it is compiled, which takes a moment: a time that was to come when it was asked for is a right one.
      const now = clock.now()
      const compiled = await find(handle, scope, id)
      const variants = await selectVariants(handle, compiled)
      await checks.mustCompile(compiled, variants)
      return inTransaction(handle, async (trx) => {
        await lockAccount(trx, scope.accountId)
        const row = await lock(trx, scope, id)
        const status = statusAfter('send', row.status)
        if (status === null) throw wrongState(id, row.status, 'sent')
        if (!isSameContent(row, compiled) || !isDeepStrictEqual(await selectVariants(trx, row), variants)) {
          throw new DomainError('campaign_state', `The campaign "${id}" was changed meanwhile. Send it again.`)
        }
        const start = await startOf(trx, row, { when, now })
        const { content, sent } = await checks.check(trx, scope.accountId, { fields: row, faults: [], variants })
        await checks.mustBeSendable(trx, scope, { ...row, ...content })
        if ((await countActive(trx, scope.accountId)) >= campaignLimits.active) {
          const message = `The account has ${campaignLimits.active} campaigns that are scheduled, sending or paused, the most there may be. Wait for one to end, or cancel one.`
          throw new DomainError('too_many_campaigns', message)
        }
        await replaceVariantContents(trx, { accountId: scope.accountId, id }, sent)
        const change = { ...content, ...start, status, due_at: start.scheduled_at, updated_at: now }
        await audit(trx, scope, row, startingOf(row, { when, start }))
        return toCampaign(await updateCampaign(trx, { accountId: scope.accountId, id }, change))
      })
    },
    pause: (handle, scope, id) => move(handle, scope, { id, how: 'pause', what: 'paused' }),
    resume: (handle, scope, id) => move(handle, scope, { id, how: 'resume', what: 'resumed' }),
    cancel: (handle, scope, id) => move(handle, scope, { id, how: 'cancel', what: 'canceled' }),
    async chooseWinner(handle, scope, id, name) {
      return inTransaction(handle, async (trx) => {
        const row = await lock(trx, scope, id)
        const chosen = await chooseWinner(trx, row, { name, at: clock.now() })
        if (chosen.ab_winner !== row.ab_winner) {
          await audit(trx, scope, row, { action: 'campaign.winner_chosen', details: { variant: name } })
        }
        return toCampaign(chosen)
      })
    },
    async duplicate(handle, scope, id) {
      const row = await find(handle, scope, id)
      const variants = await selectVariants(handle, row)
      const ids = [row.template_id, ...variants.map(({ content }) => content?.template_id)].filter((one) => one != null)
      const subjects = await subjectsOfPublished(handle, scope.accountId, ids)
      const fields = fieldsOfDuplicate(row, subjects.get(row.template_id ?? '') ?? null)
      const copies = variantsOfDuplicate(row, variants, (templateId) => subjects.has(templateId))
      return inTransaction(handle, (trx) => add(trx, scope, { fields, variants: copies }))
    },
    async test(handle, scope, id, { to, subscriberId, variant }) {
      const row = await find(handle, scope, id)
      const addressees = addresseesOf(to)
      const variants = await selectVariants(handle, row)
      // A campaign that was sent has its own copy: its template, segments and topic may have changed or be deleted.
      const { content, sent } =
        row.status === 'draft'
          ? await checks.check(handle, scope.accountId, { fields: row, faults: [], variants })
          : { content: {}, sent: variants }
      const { row: shown } = withVariant({ ...row, ...content }, { name: variant, variants: sent })
      const faults = await checks.faultsOfMjml(shown)
      if (faults.length > 0) throw brokenRules(faults)
      const means = { handle, emails, renderer: rendererOf(scope.accountId), unsubscribeUrl, webUrl, now: clock.now() }
      return sendTests(means, scope, { row: shown, to: addressees, as: subscriberId })
    },
    async render(handle, scope, id, request) {
      const [found] = await withSubjects(handle, scope.accountId, [await find(handle, scope, id)])
      if (found === undefined) throw notFound('campaign', id)
      const shown = withVariant(found, { name: request.variant, variants: await selectVariants(handle, found) })
      const means = { handle, renderer: rendererOf(scope.accountId), lacksDmarc, now: clock.now() }
      return previewOfCampaign(means, shown, request)
    },
    async recipients(handle, scope, id, { status, limit, cursor }) {
      const after = decodeCursor('subscriber', cursor)
      const campaign = await find(handle, scope, id)
      const page = { status, isCanceled: campaign.status === 'canceled', after, limit: limit + 1 }
      const { rows, lookedTo } = await selectRecipients(handle, { accountId: scope.accountId, id }, page)
      return pageOfRows(rows, {
        limit,
        idOf: (row) => row.subscriber_id,
        toItem: (row) => toRecipient(campaign, row),
        lookedTo,
      })
    },
    async exportRecipients(handle, scope, id) {
      const campaign = await find(handle, scope, id)
      return exportRecipients(handle, { campaign, declared: await findProperties(handle, scope.accountId) })
    },
    async statistics(handle, scope, id) {
      const row = await find(handle, scope, id)
      const range = {
        since: new Date(row.created_at.getTime() - dayMs),
        until: new Date(clock.now().getTime() + dayMs),
      }
      const deferred = await deferredOf(handle, row, clock.now())
      return toStatistics(row, await reportOfCampaign(handle, scope, { id, ...range }), deferred)
    },
  }
}

/** Returns the action and details of the audit log entry for a campaign that is sent or scheduled. */
function startingOf(
  { audience_id: audienceId }: Pick<CampaignRow, 'audience_id'>,
  { when, start }: { when: StartTime; start: Pick<CampaignRow, 'local_time'> & { scheduled_at: Date } },
): Pick<NewAuditEntry, 'action' | 'details'> {
  if (when === null) return { action: 'campaign.sent', details: { audienceId } }
  const { local_time: localTime, scheduled_at: at } = start
  const time = localTime === null ? { scheduledAt: at.toISOString() } : { localTime }
  return { action: 'campaign.scheduled', details: { audienceId, ...time } }
}

/** Whether the subject is that of the template now. */
function isOfTemplate(row: CampaignSummary): row is CampaignSummary & { template_id: string } {
  return row.status === 'draft' && row.template_id !== null && !row.has_own_subject
}

/** Returns the variants of a test as it was written. */
function variantsOf(written: WrittenAbTest | null): Variant[] {
  return (written?.test.variants ?? []).map((variant, number) => ({
    ...variant,
    content: written?.contents[number] ?? null,
  }))
}
