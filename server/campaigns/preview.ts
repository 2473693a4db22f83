import type { RenderCampaign } from '../../contract/campaign-resource.ts'
import type { TemplatePart, TemplatePreview } from '../../contract/templates.ts'
import type { Handle } from '../database/connection.ts'
import type { EmailFault } from '../emails/validate-email.ts'
import { readMailbox } from '../message/mailbox.ts'
import { brokenRule } from '../shared/errors.ts'
import { findProperties, valuesInMessages } from '../subscribers/properties.ts'
import { hasBothMarkups, type Markup, noMarkup, notBesideHtml } from '../templates/mjml.ts'
import { type PreviewedContent, previewOf } from '../templates/preview.ts'
import type { AccountRenderer } from '../templates/renderer-turns.ts'
import { sampleLinks } from '../templates/variables.ts'
import { contentNow } from './content.ts'
import { changed } from './fields.ts'
import { contentOf, variablesOf } from './message.ts'
import type { ShownCampaign } from './named-variant.ts'
import { type CampaignRow, findAccountName, findPerson } from './queries.ts'
import { refusalOf } from './test-messages.ts'

type Means = {
  handle: Handle
  renderer: AccountRenderer
  lacksDmarc: (handle: Handle, accountId: string, domainName: string) => Promise<boolean>
  now: Date
}

/** Who stands in a message for nobody in particular. */
const sample = { id: null, email: 'ada@example.org', first_name: 'Ada', last_name: 'Lovelace', properties: {} }

/**
 * Renders a campaign, or content that is not stored, for one person. Throws `rule_violation` for a person that does not
 * exist and for content that no campaign may have, and `template_not_found`.
 */
export async function previewOfCampaign(
  { handle, renderer, lacksDmarc, now }: Means,
  shown: ShownCampaign,
  { subscriberId, variant: _, ...unsaved }: RenderCampaign,
): Promise<TemplatePreview> {
  const { row } = shown
  const { account_id: accountId } = row
  const person = subscriberId === undefined ? sample : await findPerson(handle, accountId, subscriberId)
  if (person === undefined) throw brokenRule('body.subscriberId', 'must be a subscriber of the account')
  const { content, constants, errors } = await contentToShow(handle, shown, { unsaved, now })
  const { id, email, first_name: firstName, last_name: lastName } = person
  const properties = valuesInMessages(person.properties, await findProperties(handle, accountId))
  const values = variablesOf(
    { id, email, firstName, lastName, properties },
    {
      campaign: { ...row, variables: constants, constants: null },
      accountName: await findAccountName(handle, accountId),
      ...sampleLinks,
    },
  )
  const preview = await previewOf(renderer, content, values)
  if (errors.length === 0) {
    const domain = readMailbox(row.sender).mailbox?.domain
    if (preview.errors.length > 0 || domain === undefined || !(await lacksDmarc(handle, accountId, domain))) {
      return preview
    }
    const message = `The domain "${domain}" has no DMARC record that receivers apply. Gmail and Yahoo require one of everyone who sends many emails: publish "v=DMARC1; p=none" at "_dmarc.${domain}".`
    return { ...preview, checks: [...preview.checks, { code: 'no_dmarc', line: null, message }] }
  }
  const more = preview.errors.filter(({ part }) => errors.every((one) => one.part !== part))
  return { subject: null, html: null, text: null, errors: [...errors, ...more], checks: [] }
}

type Unsaved = Omit<RenderCampaign, 'subscriberId' | 'variant'>

async function contentToShow(
  handle: Handle,
  { row, templatePath, inherited }: ShownCampaign,
  { unsaved, now }: { unsaved: Unsaved; now: Date },
): Promise<{ content: PreviewedContent; constants: CampaignRow['variables']; errors: TemplatePreview['errors'] }> {
  const isStored = Object.values(unsaved).every((value) => value === undefined)
  // A campaign that was sent has its own copy: the template may have changed or be deleted.
  if (isStored && row.status !== 'draft') {
    const constants = row.constants ?? row.variables
    return { content: { ...contentOf(row), mjml: row.mjml }, constants, errors: [] }
  }
  const stored = row.status === 'draft' ? row : { ...row, template_id: null, has_own_subject: true }
  const { fields, faults } = changed(stored, unsaved, {
    markup: markupToShow(unsaved.content ?? {}),
    abTest: null,
  })
  if (faults.length > 0) throw refusalOf(faults)
  const path = unsaved.templateId === undefined ? templatePath : 'body.templateId'
  const { content, faults: ofContent } = await contentNow(handle, row.account_id, { fields, templatePath: path, now })
  const hasOther = unsaved.content !== undefined || unsaved.templateId !== undefined
  let { constants } = content
  if (inherited !== undefined && !hasOther) {
    const ofTemplate = { ...fields, template_id: inherited.template_id }
    constants = (await contentNow(handle, row.account_id, { fields: ofTemplate, now })).content.constants
  }
  const mjml = fields.template_id === null ? fields.mjml : null
  return {
    content: { ...contentOf(content), mjml },
    constants,
    errors: ofContent.flatMap(errorsOfFault),
  }
}

/** Like `markupOf`; the preview compiles MJML itself, and says what is wrong with it. */
function markupToShow(given: NonNullable<Unsaved['content']>): (before: Markup) => Markup {
  const { html, mjml } = given
  if (hasBothMarkups(given)) throw brokenRule('body.content.mjml', notBesideHtml)
  if (typeof mjml === 'string') return () => ({ html: null, mjml })
  if (html !== undefined) return () => ({ ...noMarkup, html })
  return (before) => (mjml === null ? { ...before, mjml } : before)
}

const partOf: Readonly<Record<string, TemplatePart>> = {
  'body.subject': 'subject',
  'body.content.html': 'html',
  'body.content.text': 'text',
  'body.templateId': 'html',
}

/** Returns a fault of the message before rendering as an error of the preview. Empty for a fault of another field. */
function errorsOfFault({ path, message }: EmailFault): TemplatePreview['errors'] {
  const [, variable] = /^body\.(?:variables|content\.fallbacks)\.?(.*)$/.exec(path) ?? []
  const part = variable === undefined ? partOf[path] : 'variables'
  if (part === undefined) return []
  const what = variable === undefined ? part : variable || 'variables'
  return [{ part, line: null, message: `${what}: ${message}.` }]
}
