import { campaignLimits } from '../../contract/campaign-resource.ts'
import type { Handle } from '../database/connection.ts'
import type { Constants } from '../database/tables/campaigns.ts'
import type { EmailFault } from '../emails/validate-email.ts'
import type { TemplateContent } from '../rendering/renderer.ts'
import { DomainError } from '../shared/errors.ts'
import { findPublished, type PublishedTemplate } from '../templates/published.ts'
import { readValues } from '../templates/variables.ts'
import { pathOf } from './ab-test.ts'
import { faultsOfFallbacks, givenByCampaign, isOfCampaign, withFallbacks } from './fallbacks.ts'
import { faultsOfSize, readCampaign } from './message.ts'
import type { CampaignFields } from './queries.ts'
import { asVariant, type Variant } from './variants.ts'

/** The content of a campaign if it is sent now. */
export type CampaignContent = TemplateContent & { template_version: number | null; constants: Constants }

/**
 * Returns the content of a campaign: its own, or that of the published version of its template, and what is wrong with
 * it, for people. Paths are those of the request. Throws `template_not_found`.
 *
 * @param options.templatePath Where the error says that the template stands.
 */
export async function contentNow(
  handle: Handle,
  accountId: string,
  { fields, templatePath = 'body.templateId', now }: { fields: CampaignFields; templatePath?: string; now: Date },
): Promise<{ content: CampaignContent; faults: EmailFault[] }> {
  const faults = faultsOfVariables(fields.variables)
  if (fields.template_id === null) {
    const { subject, preheader, html, text, variables, constants: fallbacks } = fields
    const constants = withFallbacks(variables, fallbacks)
    const content = { subject, preheader, html, text, template_version: null, constants }
    const ofFallbacks = faultsOfFallbacks(fallbacks, 'body.content.fallbacks')
    return { content, faults: [...faults, ...ofFallbacks, ...(await faultsOfEmail(fields, now))] }
  }
  const version = await publishedTemplate(handle, accountId, { id: fields.template_id, path: templatePath })
  const { preheader, html, text } = version
  const subject = fields.has_own_subject ? fields.subject : version.subject
  const { values, faults: ofValues } = readTemplateValues(version, fields.variables)
  const content = { subject, preheader, html, text, template_version: version.version, constants: values }
  const ofEmail = (await faultsOfEmail({ ...fields, subject, html, mjml: null, text }, now)).map((fault) =>
    isOfTemplate(fault, fields) ? { ...fault, path: 'body.templateId', message: told(fault) } : fault,
  )
  return { content, faults: [...faults, ...ofValues, ...ofEmail] }
}

/**
 * Returns the variants of a campaign as they are sent now, with the published versions of their templates, and what is
 * wrong with them, for people. Throws `template_not_found`.
 *
 * @param fields With the content that it is sent with now.
 */
export async function variantsNow(
  handle: Handle,
  accountId: string,
  { fields, variants, now }: { fields: CampaignFields; variants: readonly Variant[]; now: Date },
): Promise<{ variants: Variant[]; faults: EmailFault[] }> {
  const faults: EmailFault[] = []
  const read: Variant[] = []
  for (const [number, variant] of variants.entries()) {
    const { variant: sent, faults: ofContent } = await sentVariant(handle, accountId, { fields, variant, number })
    read.push(sent)
    faults.push(...ofContent, ...(await faultsOfVariant(fields, { variant: sent, number, now })))
  }
  return { variants: read, faults }
}

/** Returns a variant with the values of its content, and with the content of its template. */
async function sentVariant(
  handle: Handle,
  accountId: string,
  { fields, variant, number }: { fields: CampaignFields; variant: Variant; number: number },
): Promise<{ variant: Variant; faults: EmailFault[] }> {
  const { name, content } = variant
  if (content === null) return { variant, faults: [] }
  const place = `body.${pathOf(number)}`
  if (content.template_id === null) {
    const { constants: fallbacks } = content
    const constants = fallbacks && withFallbacks(fields.variables, fallbacks)
    const ofFallbacks = faultsOfFallbacks(fallbacks, `${place}.content.fallbacks`)
    return { variant: { ...variant, content: { ...content, constants } }, faults: ofFallbacks }
  }
  const path = `${place}.templateId`
  const version = await publishedTemplate(handle, accountId, { id: content.template_id, path })
  const { preheader, html, text } = version
  const { values, faults } = readTemplateValues(version, fields.variables)
  const copied = { preheader, html, text, mjml: null, template_version: version.version, constants: values }
  const told = faults.map((one) => ({ ...one, message: `${one.message}, for the template of the variant "${name}"` }))
  return { variant: { ...variant, content: { ...content, ...copied } }, faults: told }
}

async function faultsOfVariant(
  fields: CampaignFields,
  { variant, number, now }: { variant: Variant; number: number; now: Date },
): Promise<EmailFault[]> {
  const { subject, content } = variant
  const isTemplate = content !== null && content.template_id !== null
  // The faults of the campaign itself are left out here: they are reported once.
  return (await faultsOfEmail(asVariant(fields, variant), now)).flatMap((fault) => {
    const isOfContent = content !== null && fault.path.startsWith('body.content')
    if (!isOfContent && (subject === null || fault.path !== 'body.subject')) return []
    const place = `body.${pathOf(number)}.`
    if (isOfContent && isTemplate) return [{ ...fault, path: `${place}templateId`, message: told(fault) }]
    return [{ ...fault, path: fault.path.replace('body.', place) }]
  })
}

async function publishedTemplate(
  handle: Handle,
  accountId: string,
  { id, path }: { id: string; path: string },
): Promise<PublishedTemplate> {
  const version = await findPublished(handle, accountId, id)
  if (typeof version !== 'string') return version
  const [text, fault] =
    version === 'unknown'
      ? [`There is no template with the id "${id}" in this account.`, 'must be a template of the account']
      : [`The template "${id}" was never published: publish it first.`, 'is not published']
  throw new DomainError('template_not_found', text, { details: [{ path, message: fault }] })
}

/** Those that the campaign gives itself need no value, whatever the template says of them. */
function readTemplateValues({ variables }: PublishedTemplate, given: Constants) {
  const declared = variables.filter(({ name }) => !isOfCampaign(name))
  const { values, faults } = readValues(declared, given, 'body.variables')
  return { values, faults: faults.map((fault) => ({ ...fault, isOfForm: false })) }
}

function faultsOfVariables(variables: Constants): EmailFault[] {
  const { variablesBytes } = campaignLimits
  if (Buffer.byteLength(JSON.stringify(variables)) > variablesBytes) {
    return [{ path: 'body.variables', message: `must be at most ${variablesBytes} bytes as JSON`, isOfForm: false }]
  }
  return Object.keys(variables)
    .filter(isOfCampaign)
    .map((name) => ({ path: `body.variables.${name}`, message: givenByCampaign, isOfForm: false }))
}

async function faultsOfEmail(fields: CampaignFields, now: Date): Promise<EmailFault[]> {
  const large = faultsOfSize(fields, 'body')
  if (large.length > 0) return large
  // MJML with faults may be stored in a draft, and is HTML when they are gone.
  const html = fields.html ?? (fields.mjml === null ? null : '<p></p>')
  return (await readCampaign({ ...fields, html }, { now, path: 'body' })).faults ?? []
}

function isOfTemplate({ path }: EmailFault, { has_own_subject }: CampaignFields): boolean {
  return path.startsWith('body.content') || (path === 'body.subject' && !has_own_subject)
}

function told({ path, message }: EmailFault): string {
  return `its ${path.replace(/^body\.(content\.)?/, '')} ${message}`
}
