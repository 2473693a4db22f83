import type {
  Campaign,
  CampaignDetails,
  CampaignRecipient,
  CampaignRecipientStatus,
  CampaignStatus,
  CreateCampaign,
  RenderCampaign,
  UpdateCampaign,
} from '../../contract/campaign-resource.ts'
import type { CampaignStatistics } from '../../contract/campaign-statistics.ts'
import type { TestCampaign } from '../../contract/campaigns.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import type { TemplatePreview } from '../../contract/templates.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { EmailService } from '../emails/service.ts'
import type { Clock } from '../lib/clock.ts'
import type { MessagePageRef, UnsubscribeRef } from '../message/mail-tokens.ts'
import { brokenRules, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Scope } from '../shared/scope.ts'
import { reportOfCampaign } from '../statistics/campaign-figures.ts'
import { findProperties } from '../subscribers/properties.ts'
import { markupOf } from '../templates/mjml.ts'
import { subjectsOfPublished } from '../templates/published.ts'
import type { RendererTurns } from '../templates/renderer-turns.ts'
import { readAbTest, type WrittenAbTest } from './ab-test.ts'
import { createChecks } from './checks.ts'
import { type Compiled, changed, changedAnyTime, fieldsOf, fieldsOfDuplicate } from './fields.ts'
import { type CampaignLifecycle, createLifecycle, mustFind, mustLock } from './lifecycle.ts'
import { faultsOfMarkup } from './message.ts'
import { withVariant } from './named-variant.ts'
import { previewOfCampaign } from './preview.ts'
import {
  type CampaignFields,
  type CampaignRow,
  type CampaignSummary,
  insertCampaign,
  selectCampaigns,
  selectRecipients,
  updateCampaign,
} from './queries.ts'
import { exportRecipients } from './recipient-export.ts'
import { wrongState } from './states.ts'
import { deferredOf, toStatistics } from './statistics.ts'
import { addresseesOf, sendTests } from './test-messages.ts'
import { type ArchiveUrl, createToResponse, toRecipient } from './to-response.ts'
import { replaceVariantContents, selectVariants, type Variant, variantsOfDuplicate } from './variants.ts'

/** Use cases for campaigns. Throws DomainErrors. Every call is limited to one mode of one account. */
export type CampaignService = CampaignLifecycle & {
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

  return {
    ...createLifecycle({ clock, emails, checks, toCampaign }),
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
      const [row] = await withSubjects(handle, scope.accountId, [await mustFind(handle, scope, id)])
      if (row === undefined) throw notFound('campaign', id)
      return detailsOf(handle, row)
    },
    async update(handle, scope, id, patch) {
      const compiled = await compile(scope, patch)
      return inTransaction(handle, async (trx) => {
        const row = await mustLock(trx, scope, id)
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
    async duplicate(handle, scope, id) {
      const row = await mustFind(handle, scope, id)
      const variants = await selectVariants(handle, row)
      const ids = [row.template_id, ...variants.map(({ content }) => content?.template_id)].filter((one) => one != null)
      const subjects = await subjectsOfPublished(handle, scope.accountId, ids)
      const fields = fieldsOfDuplicate(row, subjects.get(row.template_id ?? '') ?? null)
      const copies = variantsOfDuplicate(row, variants, (templateId) => subjects.has(templateId))
      return inTransaction(handle, (trx) => add(trx, scope, { fields, variants: copies }))
    },
    async test(handle, scope, id, { to, subscriberId, variant }) {
      const row = await mustFind(handle, scope, id)
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
      const [found] = await withSubjects(handle, scope.accountId, [await mustFind(handle, scope, id)])
      if (found === undefined) throw notFound('campaign', id)
      const shown = withVariant(found, { name: request.variant, variants: await selectVariants(handle, found) })
      const means = { handle, renderer: rendererOf(scope.accountId), lacksDmarc, now: clock.now() }
      return previewOfCampaign(means, shown, request)
    },
    async recipients(handle, scope, id, { status, limit, cursor }) {
      const after = decodeCursor('subscriber', cursor)
      const campaign = await mustFind(handle, scope, id)
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
      const campaign = await mustFind(handle, scope, id)
      return exportRecipients(handle, { campaign, declared: await findProperties(handle, scope.accountId) })
    },
    async statistics(handle, scope, id) {
      const row = await mustFind(handle, scope, id)
      const range = {
        since: new Date(row.created_at.getTime() - dayMs),
        until: new Date(clock.now().getTime() + dayMs),
      }
      const deferred = await deferredOf(handle, row, clock.now())
      return toStatistics(row, await reportOfCampaign(handle, scope, { id, ...range }), deferred)
    },
  }
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
