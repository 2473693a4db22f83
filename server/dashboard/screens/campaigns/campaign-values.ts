import type { Input } from '../../api/client.ts'
import { readValues } from '../../components/json-values.ts'
import { bodyOfMarkup, type Markup, markupWritten } from '../../components/markup-field.tsx'
import { type AbTestValues, abTestBodyOf, abTestValuesOf, emptyAbTest } from './ab-test-values.ts'
import type { CampaignDetails } from './campaign.ts'
import { noSendWindow, type SendWindowValues, sendWindowBodyOf, sendWindowValuesOf } from './send-window-values.ts'

/** A campaign as it is written: lists are lines, and what may be empty is empty text. */
export type CampaignValues = Markup & {
  name: string
  audienceId: string
  segmentIds: string[]
  /** Empty: it is about none. */
  topicId: string
  from: string
  replyTo: string
  /** With a template, empty: that of the template. */
  subject: string
  source: 'own' | 'template'
  templateId: string
  /** JSON. */
  variables: string
  preheader: string
  text: string
  /** Values that the content has where `variables` gives none. They are not changed here. */
  fallbacks: CampaignDetails['content']['fallbacks']
  trackOpens: boolean
  trackClicks: boolean
  tags: string
  throttle: string
  sendWindow: SendWindowValues
  lateStart: 'send' | 'skip'
  isPublic: boolean
  abTest: AbTestValues
}

/** The fields that have another name in the body of a request. */
export const fieldOf = {
  'content.preheader': 'preheader',
  'content.html': 'html',
  'content.mjml': 'mjml',
  'content.text': 'text',
  content: 'html',
} as const

const firstHtml = `<p>Hello {{ contact.firstName | default: "there" }},</p>

<p>Write your message here.</p>

<p><a href="{{ unsubscribeUrl }}">Unsubscribe</a></p>
`

/** The initial values of a new campaign. */
export const emptyValues: CampaignValues = {
  name: '',
  audienceId: '',
  segmentIds: [],
  topicId: '',
  from: '',
  replyTo: '',
  subject: '',
  source: 'own',
  templateId: '',
  variables: '',
  preheader: '',
  format: 'html',
  html: firstHtml,
  mjml: '',
  text: '',
  fallbacks: null,
  trackOpens: false,
  trackClicks: false,
  tags: '',
  throttle: '',
  sendWindow: noSendWindow,
  lateStart: 'send',
  isPublic: false,
  abTest: emptyAbTest,
}

export function valuesOf(campaign: CampaignDetails): CampaignValues {
  const { name, audienceId, from, subject, content, trackOpens, trackClicks, lateStart, throttle } = campaign
  return {
    name,
    audienceId,
    segmentIds: campaign.segmentIds,
    topicId: campaign.topicId ?? '',
    from,
    replyTo: campaign.replyTo.join('\n'),
    subject,
    source: campaign.templateId === null ? 'own' : 'template',
    templateId: campaign.templateId ?? '',
    variables: Object.keys(campaign.variables).length === 0 ? '' : JSON.stringify(campaign.variables, null, 2),
    preheader: content.preheader ?? '',
    ...markupWritten(content),
    text: content.text ?? '',
    fallbacks: content.fallbacks,
    trackOpens,
    trackClicks,
    tags: campaign.tags.join('\n'),
    throttle: throttle === null ? '' : String(throttle),
    sendWindow: sendWindowValuesOf(campaign.sendWindow),
    lateStart,
    isPublic: campaign.archive === 'public',
    abTest: abTestValuesOf(campaign.abTest),
  }
}

type Body = Input<'POST /v1/campaigns'>['body']

/** Returns the values as the API takes them. */
export function bodyOf(values: CampaignValues): Body {
  const { name, audienceId, segmentIds, from, trackOpens, trackClicks, lateStart, variables, throttle } = values
  return {
    name,
    audienceId,
    segmentIds,
    topicId: orNull(values.topicId),
    from,
    replyTo: linesOf(values.replyTo),
    ...messageOf(values),
    variables: readValues(variables) ?? {},
    trackOpens,
    trackClicks,
    tags: linesOf(values.tags),
    throttle: throttle.trim() === '' ? null : Number(throttle),
    sendWindow: sendWindowBodyOf(values.sendWindow),
    lateStart,
    archive: values.isPublic ? ('public' as const) : ('none' as const),
    abTest: abTestBodyOf(values.abTest),
  }
}

/**
 * Returns a change of a draft as the API takes it. The API does not tell whether the subject is that of the template:
 * one that was not changed is not sent, so that it stays what it was.
 */
export function changeOf(values: CampaignValues, before: CampaignValues): Partial<Body> {
  const { subject, ...body } = bodyOf(values)
  return values.source === 'template' && values.subject === before.subject ? body : { ...body, subject }
}

function messageOf(values: CampaignValues) {
  const { source, templateId, subject, preheader, text, fallbacks } = values
  if (source === 'template') return { templateId, subject: orNull(subject) }
  return { subject, content: { preheader: orNull(preheader), ...bodyOfMarkup(values), text: orNull(text), fallbacks } }
}

/** Returns what a preview is rendered of: the message as it is written now. */
export function previewBodyOf(values: CampaignValues): Input<'POST /v1/campaigns/:id/render'>['body'] {
  const { subject, ...message } = messageOf(values)
  return { ...message, ...(subject !== '' && { subject }), variables: readValues(values.variables) ?? {} }
}

function orNull(text: string): string | null {
  return text === '' ? null : text
}

/** Returns the lines of a text that hold something. */
export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
