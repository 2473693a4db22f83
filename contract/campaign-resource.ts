import { z } from 'zod'
import { abTestSchemas, variantName } from './campaign-ab-test.ts'
import { campaignSendWindow, campaignWaiting, localTime, sendWindow, timezone } from './campaign-times.ts'
import { emailLimits, emailLine } from './email-content.ts'
import { recipientStatus } from './email-status.ts'
import { line, list, mailbox, recipientAddress, text, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { metadata, shownMetadata } from './metadata.ts'
import { mode } from './mode.ts'
import { mjmlSource, source } from './sources.ts'
import { givenFallbacks, shownFallbacks, templateLimits, templateVariables } from './template-variables.ts'

/** How much a campaign may be. */
export const campaignLimits = {
  nameCharacters: 200,
  preheaderCharacters: 500,
  /** Of HTML and of text, each: what is rendered. UTF-16 code units. */
  contentLength: templateLimits.sourceLength,
  /** Bytes of HTML and of text, each: they are stored for every recipient. */
  contentBytes: 1_000_000,
  testAddresses: 10,
  /** Messages an hour that a throttle may allow. */
  throttlePerHour: 10_000_000,
  scheduleDays: 365,
  /** Campaigns of an account that are scheduled, sending or paused at once. */
  active: 100,
  segments: 10,
  /** Of the values of `variables`, as JSON: they are rendered with for every recipient. */
  variablesBytes: 16_384,
  /** Links that are counted by themselves. */
  links: 100,
  /** Of these links together. */
  linkCharacters: 65_536,
  /** Mailbox providers and domains that statistics tell apart. */
  providers: 20,
} as const

/** The states of a campaign: docs/architecture/campaign-states.md. */
export const campaignStatuses = ['draft', 'scheduled', 'sending', 'paused', 'completed', 'canceled'] as const

export const campaignStatus = z.enum(campaignStatuses).meta({
  id: 'CampaignStatus',
  description:
    '`draft`: may be changed. `scheduled`: waits for its time, or its recipients are being listed. `sending` and `paused`: on the way. `completed`: every recipient was handed over for the first time. `canceled`: ended early.',
})

export const campaignRecipientStatus = z
  .enum(['waiting', 'queued', 'handed_over', 'failed', 'skipped', 'canceled'])
  .meta({
    id: 'CampaignRecipientStatus',
    description:
      '`waiting`: has no email yet. `queued`: the email waits for its first attempt. `handed_over`: the first attempt was made. `failed`: the content could not be rendered for this person. `skipped`: not written to, see `reason`. `canceled`: the campaign ended before.',
  })

const name = text(campaignLimits.nameCharacters)
  .min(1)
  .meta({ description: 'What people call it.', example: 'Spring news' })

const figure = (count: number) => count.toLocaleString('en-US')

/** HTML or text. The schema counts its UTF-16 code units; `server/campaigns/message.ts` counts its bytes. */
const contentPart = (description: string) =>
  source(description)
    .optional()
    .meta({
      description: `${description} Liquid. At most ${figure(campaignLimits.contentLength)} UTF-16 code units (what JavaScript calls its length), and ${figure(campaignLimits.contentBytes)} bytes in UTF-8.`,
    })

const campaignContent = z
  .strictObject({
    preheader: line(campaignLimits.preheaderCharacters)
      .nullable()
      .optional()
      .meta({ description: 'What mail programs show behind the subject in a list.' }),
    html: contentPart(
      'The message as HTML. At least one of `html`, `mjml` and `text` is needed. A change of it takes the place of MJML.',
    ),
    mjml: mjmlSource.optional(),
    text: contentPart('The message as plain text. Null: it is made from the HTML.'),
    fallbacks: givenFallbacks.nullable().optional(),
  })
  .meta({
    id: 'CampaignContent',
    description: 'The message.',
    example: { preheader: null, html: '<p>Spring is here.</p>', text: 'Spring is here.' },
  })

const shownContent = z.object({
  preheader: z.string().nullable(),
  html: z
    .string()
    .nullable()
    .meta({ description: 'As it was written, or as the MJML was compiled. Null where the MJML has a fault.' }),
  mjml: z.string().nullable().meta({ description: 'What the HTML was compiled from. Null: it was written.' }),
  text: z.string().nullable(),
  fallbacks: shownFallbacks.nullable().meta({
    description:
      'Values for names that `variables` does not give. A draft has them as they were written, a campaign that was sent has those of its template. Null: there are none. A variant with null has those of the campaign.',
  }),
})

const abTest = abTestSchemas({ written: campaignContent, shown: shownContent })

const tag = line(emailLimits.tagCharacters).min(1)
const throttle = z.int().min(1).max(campaignLimits.throttlePerHour).nullable().meta({
  description: 'Messages that are queued in any 60 minutes at most. Null, the default: as fast as they leave.',
})
const lateStart = z.enum(['send', 'skip']).meta({
  description:
    'What happens when the service was not running at `scheduledAt` and is more than 10 minutes late: `send`, the default, or `skip`, which cancels the campaign.',
})

/** The variables that a campaign gives to its content itself. */
export const campaignVariables = [
  'contact',
  'properties',
  'campaign',
  'account',
  'unsubscribeUrl',
  'preferencesUrl',
  'webUrl',
] as const

const archive = z.enum(['none', 'public']).meta({
  id: 'CampaignArchive',
  description:
    '`public`: everybody may read it at `archiveUrl` once it has started, with the fallbacks for a person. `none`, the default: its recipients alone may, by their own links. May be changed at any time.',
})

const segmentIds = list(idSchema('segment', 'A segment of the audience.'), {
  max: campaignLimits.segments,
  fault: `must be at most ${campaignLimits.segments} segments`,
}).meta({
  description: `It goes to the people of at least one of these segments of the audience, to each once. Who is in them is looked up when it starts. Default: none, so to the whole audience. At most ${campaignLimits.segments}.`,
})

const variables = templateVariables.meta({
  description: `Values for the content, the same for all people: text, numbers, true and false, lists and objects, by name. Those that a template declares must be of its types. ${campaignVariables.map((one) => `\`${one}\``).join(', ')} are given by the campaign itself, and must not be named here. At most ${templateLimits.variables}, and ${campaignLimits.variablesBytes / 2 ** 10} KiB as JSON.`,
  example: { season: 'Spring' },
})

/** The fields of a campaign that may be long, and how long. */
export const longCampaignFields = {
  html: campaignLimits.contentLength,
  mjml: templateLimits.sourceLength,
  text: campaignLimits.contentLength,
} as const

const inputFields = {
  name,
  audienceId: idSchema('audience', 'The audience that it goes to.'),
  segmentIds,
  topicId: idSchema(
    'topic',
    'The topic that it is about: who does not get it is left out, and the link to unsubscribe leaves the topic alone. Null, the default: none.',
  ).nullable(),
  from: mailbox.meta({ description: 'Who it is from. To send with a live key, at a verified domain of the account.' }),
  replyTo: list(mailbox, { max: emailLimits.replyTo }).meta({
    description: 'Where answers go. Default: nowhere else.',
  }),
  subject: emailLine(
    'What it is about. Liquid. Needed with `content`. With `templateId`, null, the default, is the subject of the template.',
  ).nullable(),
  content: campaignContent,
  templateId: idSchema(
    'template',
    'The template that is the message, in place of `content`. Its published version is copied into the campaign when that is sent. Null: none.',
  ).nullable(),
  variables,
  trackOpens: z.boolean().meta({ description: 'Whether to tell of opens. Default: no.' }),
  trackClicks: z.boolean().meta({ description: 'Whether to tell of clicks on links. Default: no.' }),
  tags: list(tag, { max: emailLimits.tags }).meta({ description: 'Tags of each email.' }),
  metadata,
  throttle,
  sendWindow: sendWindow.nullable().meta({ description: 'The hours in which it sends. Null, the default: always.' }),
  lateStart,
  archive,
  abTest: abTest.written.nullable().meta({
    description: 'Variants of the message, tried on a share of the people. Null, the default: none.',
  }),
}

const optionalFields = z.strictObject(inputFields).partial()

export const createCampaign = z
  .strictObject({ ...optionalFields.shape, name, audienceId: inputFields.audienceId, from: inputFields.from })
  .meta({
    id: 'CreateCampaign',
    description: 'The campaign to add.',
    example: {
      name: 'Spring news',
      audienceId: exampleId('audience'),
      from: 'Postern <hello@example.com>',
      subject: 'Spring is here',
      content: { html: '<p>Spring is here.</p>', text: 'Spring is here.' },
    },
  })

export const renderCampaign = optionalFields
  .pick({ subject: true, content: true, templateId: true, variables: true })
  .extend({
    subscriberId: idSchema(
      'subscriber',
      'The person whose name, address and properties stand in the message; needs `contacts:read` too. Default: a sample, with the fallbacks of properties.',
    ).optional(),
    variant: variantName
      .meta({ description: 'The variant of its A/B test that is rendered. Default: the message of the campaign.' })
      .optional(),
  })
  .meta({
    id: 'RenderCampaign',
    description: 'Who it is rendered for, and content that is not stored, in place of what the campaign has.',
    example: { content: { html: '<p>Hello {{ contact.firstName }}</p>' } },
  })

export const updateCampaign = optionalFields.meta({
  id: 'UpdateCampaign',
  description: 'The fields to change. `content` takes the place of a template, and `templateId` that of content.',
  example: { name: 'Summer news' },
})

const count = (description: string) => z.int().min(0).meta({ description })

const campaignFields = {
  id: idSchema('campaign', 'Identifies the campaign.'),
  mode,
  status: campaignStatus,
  statusReason: z.string().nullable().meta({
    description:
      'Why the service paused or canceled it, or why it does not go on though it is tried, for people. Null: there is nothing to tell.',
  }),
  name: z.string(),
  audienceId: idSchema('audience', 'The audience. It may be deleted.'),
  segmentIds: z
    .array(idSchema('segment', 'A segment. It may be deleted.'))
    .meta({ description: 'Empty: it goes to the whole audience.' }),
  topicId: idSchema('topic', 'The topic that it is about. It may be deleted.').nullable(),
  from: mailbox,
  replyTo: z.array(mailbox),
  subject: z.string().meta({
    description: 'What it is about. Of a draft with a template and no subject of its own: that of the template.',
  }),
  templateId: idSchema(
    'template',
    'The template. It may be deleted. Null: the campaign has content of its own.',
  ).nullable(),
  templateVersion: z
    .int()
    .nullable()
    .meta({ description: 'The version of the template that was copied when the campaign was sent. Null: none.' }),
  trackOpens: z.boolean(),
  trackClicks: z.boolean(),
  tags: z.array(z.string()),
  metadata: shownMetadata,
  throttle: z.int().nullable(),
  sendWindow: campaignSendWindow.nullable().meta({ description: 'The hours in which it sends. Null: always.' }),
  lateStart: z.enum(['send', 'skip']),
  archive,
  abTest: abTest.summary.nullable().meta({ description: 'The variants of the message. Null: there is one message.' }),
  archiveUrl: z.string().nullable().meta({ description: 'The page for everybody. Null: `archive` is `none`.' }),
  recipients: count('People it goes to; 0 until they are listed.'),
  scheduledAt: timestamp.nullable().meta({
    description: 'When it is to start. With `localTime`: when it comes in the first zone. Null: it was not sent yet.',
  }),
  localTime: localTime.nullable().meta({
    description: 'The time at which each person gets it, in their own zone. Null: all get it at once.',
  }),
  fallbackTimezone: timezone.nullable().meta({
    description: 'The zone of those whose own is not known. Null: it has no `localTime`.',
  }),
  waitingFor: campaignWaiting.nullable().meta({
    description:
      'Why a campaign that is `sending` makes no emails at present. Null: it makes emails, or is not `sending`.',
  }),
  startedAt: timestamp.nullable().meta({ description: 'When it started sending.' }),
  endedAt: timestamp.nullable().meta({ description: 'When it was completed or canceled.' }),
  createdAt: timestamp,
  updatedAt: timestamp,
}

const campaignExample = {
  id: exampleId('campaign'),
  mode: 'live' as const,
  status: 'draft' as const,
  statusReason: null,
  name: 'Spring news',
  audienceId: exampleId('audience'),
  segmentIds: [],
  topicId: null,
  from: 'Postern <hello@example.com>',
  replyTo: [],
  subject: 'Spring is here',
  templateId: null,
  templateVersion: null,
  trackOpens: false,
  trackClicks: false,
  tags: [],
  metadata: {},
  throttle: null,
  sendWindow: null,
  lateStart: 'send' as const,
  archive: 'none' as const,
  abTest: null,
  archiveUrl: null,
  recipients: 0,
  scheduledAt: null,
  localTime: null,
  fallbackTimezone: null,
  waitingFor: null,
  startedAt: null,
  endedAt: null,
  createdAt: '2026-03-01T09:30:00.000Z',
  updatedAt: '2026-03-01T09:30:00.000Z',
}

export const campaign = z
  .object(campaignFields)
  .meta({ id: 'Campaign', description: 'One message to an audience.', example: campaignExample })

export const campaignDetails = z
  .object({
    ...campaignFields,
    abTest: abTest.details.nullable().meta({ description: 'The variants of the message. Null: there is one message.' }),
    content: shownContent.meta({ description: 'The message. Of a draft with a template, all are null.' }),
    variables: z.record(z.string(), z.unknown()).meta({ description: 'Values for the content, as given.' }),
  })
  .meta({
    id: 'CampaignDetails',
    description: 'A campaign with its content.',
    example: {
      ...campaignExample,
      content: {
        preheader: null,
        html: '<p>Spring is here.</p>',
        mjml: null,
        text: 'Spring is here.',
        fallbacks: null,
      },
      variables: {},
    },
  })

export const campaignRecipient = z
  .object({
    subscriberId: idSchema('subscriber', 'The person. They may be deleted.'),
    email: recipientAddress.nullable().meta({ description: 'The address now. Null: the person is deleted.' }),
    status: campaignRecipientStatus,
    reason: z.string().nullable().meta({
      description:
        'Of `skipped`: `left` (the person is not in the audience any more), `unsubscribed` (or has not confirmed, or does not get the topic) or `suppressed`. Of `failed`: the fault, for people. Else null.',
    }),
    sendAt: timestamp.nullable().meta({
      description:
        'The instant of the local time for this person: nothing is sent before. Null: it has no `localTime`.',
    }),
    variant: z.string().nullable().meta({
      description:
        'The variant of the A/B test that this person gets: in the test, or of the rest the winner. Null: the campaign has none, or the winner is not chosen yet.',
    }),
    emailId: idSchema('email', 'The email to this person.').nullable(),
    emailStatus: recipientStatus.nullable().meta({ description: 'How far the email is. Null: there is none.' }),
  })
  .meta({
    id: 'CampaignRecipient',
    description: 'One person whom a campaign goes to.',
    example: {
      subscriberId: exampleId('subscriber'),
      email: 'ada@example.org',
      status: 'handed_over',
      reason: null,
      sendAt: null,
      variant: null,
      emailId: exampleId('email'),
      emailStatus: 'delivered',
    },
  })

export type Campaign = z.infer<typeof campaign>
export type CampaignDetails = z.infer<typeof campaignDetails>
export type CampaignRecipient = z.infer<typeof campaignRecipient>
export type CampaignRecipientStatus = z.infer<typeof campaignRecipientStatus>
export type CampaignStatus = z.infer<typeof campaignStatus>
export type CreateCampaign = z.infer<typeof createCampaign>
export type RenderCampaign = z.infer<typeof renderCampaign>
export type UpdateCampaign = z.infer<typeof updateCampaign>
