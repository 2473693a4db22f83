import { isDeepStrictEqual } from 'node:util'
import { campaignLimits } from '../../contract/campaign-resource.ts'
import type { Constants } from '../database/tables/campaigns.ts'
import { type EmailFault, type ReadEmail, readEmail } from '../emails/validate-email.ts'
import { writeMailbox } from '../message/mailbox.ts'
import type { Rendered, TemplateContent, Variables } from '../rendering/renderer.ts'
import { type GivenMarkup, hasBothMarkups, notBesideHtml } from '../templates/mjml.ts'
import type { CampaignFields, CampaignRow } from './queries.ts'

/** Whom an email goes to. */
export type Addressee = { email: string; firstName: string | null; lastName: string | null }

/** Whose values stand in a message. */
export type Person = Addressee & {
  /** Null: the address of a test. */
  id: string | null
  /** Values of the contact properties of the account. */
  properties: Variables
}

/** Returns the content that is written once for all recipients. */
export function contentOf({ subject, preheader, html, text }: TemplateContent): TemplateContent {
  return { subject, preheader, html, text }
}

/** Returns that HTML and MJML are both given. `path`: where they stand in the request. */
export function faultsOfMarkup(given: GivenMarkup, path: string): EmailFault[] {
  return hasBothMarkups(given) ? [{ path: `${path}.mjml`, message: notBesideHtml, isOfForm: false }] : []
}

type WrittenContent = TemplateContent & Pick<CampaignRow, 'mjml' | 'template_id'>

/** Returns true when two versions of a campaign have one content. */
export function isSameContent(one: WrittenContent, other: WrittenContent): boolean {
  const partsOf = (row: WrittenContent) => [contentOf(row), row.mjml, row.template_id]
  return isDeepStrictEqual(partsOf(one), partsOf(other))
}

/** Returns the values of the variables in the content of a campaign for one person. */
export function variablesOf(
  person: Person,
  about: {
    campaign: { id: string; name: string; variables: Constants; constants: Constants | null }
    accountName: string
    unsubscribeUrl: string
    /** Where the message can be read in a browser. */
    webUrl: string
  },
): Variables {
  const { id, email, firstName, lastName, properties } = person
  return {
    ...(about.campaign.constants ?? about.campaign.variables),
    contact: { id, email, firstName, lastName },
    properties,
    campaign: { id: about.campaign.id, name: about.campaign.name },
    account: { name: about.accountName },
    unsubscribeUrl: about.unsubscribeUrl,
    preferencesUrl: `${about.unsubscribeUrl}/preferences`,
    webUrl: about.webUrl,
  }
}

/** Line breaks and other control characters, which a subject must not have. */
const controls = /[\p{Cc}\p{Zl}\p{Zp}]/u

/** Returns the email to a person, or what is wrong with it, for people. */
export async function emailTo(
  person: Addressee,
  fields: CampaignFields,
  { rendered, now }: { rendered: Rendered; now: Date },
): Promise<ReadEmail | string> {
  const { subject, html, text } = rendered
  if (subject === '') return 'The subject is empty for this person.'
  if (controls.test(subject)) return 'The subject has a line break or another control character for this person.'
  const name = [person.firstName, person.lastName].filter(Boolean).join(' ').replaceAll(new RegExp(controls, 'gu'), ' ')
  const read = await readCampaign({ ...fields, subject, html, text }, { now, path: 'email', to: person.email })
  if (read.email === null) return `The email is not valid: ${read.faults.map(({ message }) => message).join('; ')}.`
  // A name too long for a header is left out.
  const fits = name !== '' && writeMailbox({ name, address: person.email }).length <= maxMailboxLength
  const [recipient] = read.email.recipients
  if (recipient === undefined) return 'The address is not valid.'
  return { ...read.email, recipients: [{ ...recipient, name: fits ? name : null }] }
}

const maxMailboxLength = 500

type Placed = { now: Date; path: string; to?: string }

/** Validates what people wrote, as an email that is sent now. Paths of the content are as in the request. */
export async function readCampaign(
  fields: CampaignFields,
  { now, path, to = 'ada@example.com' }: Placed,
): Promise<{ email: ReadEmail; faults: null } | { email: null; faults: EmailFault[] }> {
  const { sender, reply_to, subject, html, text, tags, metadata, audience_id, topic_id, track_opens, track_clicks } =
    fields
  const read = await readEmail(
    {
      from: sender,
      to,
      replyTo: reply_to,
      subject,
      html,
      text,
      tags,
      metadata,
      audienceId: audience_id,
      topicId: topic_id ?? undefined,
      trackOpens: track_opens,
      trackClicks: track_clicks,
    },
    { now, path },
  )
  if (read.email !== null) return read
  const faults = read.faults.map((fault) =>
    fault.path === `${path}.html` || fault.path === `${path}.text`
      ? { ...fault, path: fault.path.replace(`${path}.`, `${path}.content.`) }
      : fault,
  )
  return { email: null, faults }
}

/** Returns the faults that the published schema refuses too, whatever the content is. */
export async function faultsOfForm(fields: CampaignFields, now: Date): Promise<EmailFault[]> {
  const { faults } = await readCampaign({ ...fields, subject: 'a', html: null, text: 'a' }, { now, path: 'body' })
  return (faults ?? []).filter(({ isOfForm }) => isOfForm)
}

/** Returns the faults of content that is larger than a campaign's may be. */
export function faultsOfSize({ html, text }: CampaignFields, path: string): EmailFault[] {
  return Object.entries({ html, text }).flatMap(([field, content]) =>
    content !== null && Buffer.byteLength(content) > campaignLimits.contentBytes
      ? [
          {
            path: `${path}.content.${field}`,
            message: `must be at most ${campaignLimits.contentBytes} bytes in UTF-8`,
            isOfForm: false,
          },
        ]
      : [],
  )
}
