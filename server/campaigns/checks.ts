import { holdAudience, isAudience } from '../audiences/presence.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { EmailService } from '../emails/service.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError, type ErrorDetail } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'
import { detailsOf } from '../templates/mjml.ts'
import type { RendererTurns } from '../templates/renderer-turns.ts'
import { findWithoutTopic, holdTopics } from '../topics/choices.ts'
import { pathOf } from './ab-test.ts'
import { type CampaignContent, contentNow, variantsNow } from './content.ts'
import type { WrittenFields } from './fields.ts'
import { contentOf, faultsOfForm, readCampaign } from './message.ts'
import type { CampaignRow } from './queries.ts'
import { checkSegments, holdSegmentsOf } from './segments.ts'
import { refusalOf } from './test-messages.ts'
import type { Variant } from './variants.ts'

type CheckMeans = {
  clock: Clock
  emails: Pick<EmailService, 'judgeCampaign'>
  rendererOf: RendererTurns
}

export type CampaignChecks = ReturnType<typeof createChecks>

/** Creates the checks of a campaign before it is stored, and before it is sent. */
export function createChecks({ clock, emails, rendererOf }: CheckMeans) {
  /**
   * Returns the content, and the variants as they are sent now. Throws when the fields are not those of a campaign that
   * can be sent.
   */
  async function check(
    handle: Handle,
    accountId: string,
    { fields, faults, variants }: WrittenFields & { variants: readonly Variant[] },
  ): Promise<{ content: CampaignContent; sent: Variant[] }> {
    const now = clock.now()
    const ofForm = await faultsOfForm(fields, now)
    if (faults.length + ofForm.length > 0) throw refusalOf([...faults, ...ofForm])
    const read = await contentNow(handle, accountId, { fields, now })
    const withContent = { ...fields, ...contentOf(read.content) }
    const { variants: sent, faults: ofVariants } = await variantsNow(handle, accountId, {
      fields: withContent,
      variants,
      now,
    })
    if (read.faults.length + ofVariants.length > 0) throw refusalOf([...read.faults, ...ofVariants])
    if (!(await isAudience(handle, accountId, fields.audience_id))) throw noAudience(fields.audience_id)
    await checkSegments(handle, accountId, fields)
    await checkTopic(handle, accountId, fields.topic_id)
    return { content: read.content, sent }
  }

  /** Throws `template_fault` when the content does not compile. Content of a template was compiled when it was published. */
  async function mustCompile(row: CampaignRow, variants: readonly Variant[]): Promise<void> {
    if (row.status !== 'draft') return
    const faultOf = rendererOf(row.account_id).faultOf
    const alone = { subject: 'a', preheader: null, html: null, text: 'a' }
    if (row.template_id === null) {
      refuse(await faultsOfMjml(row))
      const fault = await faultOf(contentOf(row))
      if (fault !== null) throw contentFault(fault)
    } else if (row.has_own_subject) {
      const fault = await faultOf({ ...alone, subject: row.subject })
      if (fault !== null) refuse([{ path: 'campaign.subject', message: fault }])
    }
    for (const [number, { subject, content }] of variants.entries()) {
      const path = `campaign.${pathOf(number)}`
      const ofSubject = subject === null ? null : await faultOf({ ...alone, subject })
      if (ofSubject !== null) refuse([{ path: `${path}.subject`, message: ofSubject }])
      if (content === null || content.template_id !== null) continue
      refuse(await faultsOfMjml({ ...row, ...content }, path))
      const ofContent = await faultOf(contentOf({ ...content, subject: 'a' }))
      if (ofContent !== null) refuse([{ path: `${path}.content`, message: ofContent }])
    }
  }

  /** Returns the faults of MJML that is not compiled. `place`: of the campaign or of its variant. */
  async function faultsOfMjml(
    { account_id: accountId, html, mjml }: Pick<CampaignRow, 'account_id' | 'html' | 'mjml'>,
    place = 'campaign',
  ): Promise<ErrorDetail[]> {
    if (mjml === null || html !== null) return []
    const { faults } = await rendererOf(accountId).compileMjml(mjml)
    const path = `${place}.content.mjml`
    return faults === null ? [{ path, message: 'It was not compiled when it was stored.' }] : detailsOf(faults, path)
  }

  /**
   * Throws why no email of a campaign may be sent now. Its audience, segments and topic cannot be deleted meanwhile: see
   * in-use.ts.
   */
  async function mustBeSendable(trx: Trx, scope: Scope, row: CampaignRow): Promise<void> {
    if (!(await holdAudience(trx, scope.accountId, row.audience_id))) throw noAudience(row.audience_id)
    await holdSegmentsOf(trx, scope.accountId, row)
    const { topic_id: topicId } = row
    if (topicId !== null && !(await holdTopics(trx, scope.accountId, [topicId])).has(topicId)) throw noTopic(topicId)
    const read = await readCampaign(row, { now: clock.now(), path: 'campaign' })
    if (read.email === null) throw refusalOf(read.faults)
    const refusal = await emails.judgeCampaign(trx, scope, { ...read.email, recipients: [] })
    if (refusal !== null) throw refusal
  }

  return { check, mustCompile, faultsOfMjml, mustBeSendable }
}

function contentFault(message: string, details?: ErrorDetail[]): DomainError {
  const told = `The campaign cannot be sent, its content has a fault: ${message} Change the content with PATCH, then send it again.`
  return new DomainError('template_fault', told, details && { details })
}

/** Throws `template_fault` unless there are no faults. */
function refuse(faults: ErrorDetail[]): void {
  const [first] = faults
  if (first !== undefined) throw contentFault(first.message, faults)
}

/** Throws `topic_not_found`. */
async function checkTopic(handle: Handle, accountId: string, id: string | null): Promise<void> {
  if (id === null || (await findWithoutTopic(handle, accountId, { id, addressKeys: [] })) !== null) return
  throw noTopic(id)
}

function noTopic(id: string): DomainError {
  return new DomainError('topic_not_found', `There is no topic with the id "${id}" in this account.`, {
    details: [{ path: 'body.topicId', message: 'must be a topic of the account' }],
  })
}

function noAudience(id: string): DomainError {
  return new DomainError('audience_not_found', `There is no audience with the id "${id}" in this account.`, {
    details: [{ path: 'body.audienceId', message: 'must be an audience of the account' }],
  })
}
