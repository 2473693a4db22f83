import type { CreateCampaign, UpdateCampaign } from '../../contract/campaign-resource.ts'
import { type SendWindow, weekdays } from '../../contract/campaign-times.ts'
import type { EmailFault } from '../emails/validate-email.ts'
import { isTimeZone } from '../lib/time-zones.ts'
import { type Markup, noMarkup } from '../templates/mjml.ts'
import { faultsOfAbTest, type WrittenAbTest } from './ab-test.ts'
import { fallbacksOf } from './fallbacks.ts'
import type { CampaignFields, CampaignRow } from './queries.ts'

/** The fields of a request as columns, and the faults that they have by themselves. Paths are those of the request. */
export type WrittenFields = { fields: CampaignFields; faults: EmailFault[] }

/** Returns the markup after a request: see `markupOf`. */
export type ChangedMarkup = (before: Markup) => Markup

/**
 * The compiled parts of a request that may have MJML. `faults`: why some could not be compiled. `abTest`: undefined: it
 * stays as it is; null: there is none.
 */
export type Compiled = { markup: ChangedMarkup; faults?: EmailFault[]; abTest: WrittenAbTest | null | undefined }

/** Reads a new campaign. */
export function fieldsOf(campaign: CreateCampaign, compiled: Compiled): WrittenFields {
  const { markup, abTest } = compiled
  const { subject = null, content, templateId = null } = campaign
  const fields: CampaignFields = {
    name: campaign.name,
    audience_id: campaign.audienceId,
    segment_ids: [...new Set(campaign.segmentIds)],
    topic_id: campaign.topicId ?? null,
    sender: campaign.from,
    reply_to: campaign.replyTo ?? [],
    template_id: templateId,
    has_own_subject: subject !== null,
    variables: campaign.variables ?? {},
    constants: content?.fallbacks ?? null,
    subject: subject ?? '',
    preheader: content?.preheader ?? null,
    ...markup(noMarkup),
    text: content?.text ?? null,
    track_opens: campaign.trackOpens ?? false,
    track_clicks: campaign.trackClicks ?? false,
    tags: [...new Set(campaign.tags)],
    metadata: campaign.metadata ?? {},
    throttle: campaign.throttle ?? null,
    send_window: windowOf(campaign.sendWindow ?? null),
    late_start: campaign.lateStart ?? 'send',
    archive: campaign.archive ?? 'none',
    ab_test: abTest?.test ?? null,
  }
  return { fields, faults: faultsOf(fields, { compiled, hasContent: content !== undefined }) }
}

/** Reads a change of a draft. Content takes the place of a template, and a template that of content. */
export function changed(row: CampaignRow, patch: UpdateCampaign, compiled: Compiled): WrittenFields {
  const { markup, abTest } = compiled
  const { content, templateId } = patch
  const hasNewTemplate = typeof templateId === 'string' && templateId !== row.template_id
  const template_id = content === undefined && templateId === undefined ? row.template_id : (templateId ?? null)
  const keepsSubject = !hasNewTemplate && (row.has_own_subject || template_id === null)
  const keptSubject = keepsSubject ? row.subject : null
  const subject = patch.subject === undefined ? keptSubject : patch.subject
  const kept =
    template_id === null
      ? { ...row, fallbacks: fallbacksOf(row) }
      : { preheader: null, text: null, fallbacks: null, ...noMarkup }
  const fields: CampaignFields = {
    name: patch.name ?? row.name,
    audience_id: patch.audienceId ?? row.audience_id,
    segment_ids: patch.segmentIds === undefined ? row.segment_ids : [...new Set(patch.segmentIds)],
    topic_id: patch.topicId === undefined ? row.topic_id : patch.topicId,
    sender: patch.from ?? row.sender,
    reply_to: patch.replyTo ?? row.reply_to,
    template_id,
    has_own_subject: subject !== null,
    variables: patch.variables ?? row.variables,
    constants: content?.fallbacks === undefined ? kept.fallbacks : content.fallbacks,
    subject: subject ?? '',
    preheader: content?.preheader === undefined ? kept.preheader : content.preheader,
    ...markup({ html: kept.html, mjml: kept.mjml }),
    text: content?.text === undefined ? kept.text : content.text,
    track_opens: patch.trackOpens ?? row.track_opens,
    track_clicks: patch.trackClicks ?? row.track_clicks,
    tags: patch.tags === undefined ? row.tags : [...new Set(patch.tags)],
    metadata: patch.metadata ?? row.metadata,
    throttle: patch.throttle === undefined ? row.throttle : patch.throttle,
    send_window: patch.sendWindow === undefined ? row.send_window : windowOf(patch.sendWindow),
    late_start: patch.lateStart ?? row.late_start,
    archive: patch.archive ?? row.archive,
    ab_test: abTest === undefined ? row.ab_test : (abTest?.test ?? null),
  }
  const hadContent = row.template_id === null && templateId === undefined
  const hasContent = content !== undefined || hadContent || (templateId === null && row.template_id === null)
  return { fields, faults: faultsOf(fields, { compiled, hasContent }) }
}

/** Returns what may be changed in any state; null: the patch changes something else too. */
export function changedAnyTime({ archive, ...others }: UpdateCampaign): Pick<CampaignFields, 'archive'> | null {
  return archive === undefined || Object.keys(others).length > 0 ? null : { archive }
}

/**
 * Returns the fields of a draft that is made of a campaign.
 *
 * @param subject The subject of the template now. Null: there is no template, or it is not published.
 */
export function fieldsOfDuplicate(row: CampaignRow, subject: string | null): CampaignFields {
  const { fields } = changed(row, {}, { markup: (before) => before, abTest: undefined })
  if (row.template_id === null) return fields
  if (subject === null && row.template_version !== null) {
    const { preheader, html, mjml, text, subject: sent } = row
    const copied = { preheader, html, mjml, text, constants: fallbacksOf(row) }
    return { ...fields, ...copied, subject: sent, has_own_subject: true, template_id: null }
  }
  return row.has_own_subject ? fields : { ...fields, subject: subject ?? row.subject }
}

/** Reads a window, with its days in the order of the week. */
function windowOf(written: WrittenWindow): SendWindow | null {
  return written && { ...written, days: weekdays.filter((day) => written.days?.includes(day) ?? true) }
}

type WrittenWindow = NonNullable<CreateCampaign['sendWindow']> | null

const fault = (path: string, message: string): EmailFault[] => [{ path, message, isOfForm: false }]

function faultsOf(
  fields: CampaignFields,
  { compiled, hasContent }: { compiled: Compiled; hasContent: boolean },
): EmailFault[] {
  return [
    ...(compiled.faults ?? []),
    ...faultsOfContent(fields, hasContent),
    ...faultsOfWindow(fields.send_window),
    ...faultsOfAbTest(fields),
    ...(compiled.abTest?.faults ?? []),
  ]
}

function faultsOfWindow(window: SendWindow | null): EmailFault[] {
  if (window === null) return []
  if (window.from === window.to) return fault('body.sendWindow.to', 'must not be the same as from')
  if (isTimeZone(window.timezone)) return []
  return fault('body.sendWindow.timezone', 'must be an IANA time zone such as Europe/Berlin')
}

function faultsOfContent(fields: CampaignFields, hasContent: boolean): EmailFault[] {
  if (fields.template_id !== null && hasContent) return fault('body.templateId', 'must not be given beside content')
  if (fields.template_id !== null) return []
  if (!hasContent) return fault('body.content', 'is needed, or templateId')
  return fields.has_own_subject ? [] : fault('body.subject', 'is needed with content')
}
