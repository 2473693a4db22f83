import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { formerSince } from './deprecations.ts'
import { emailContent, emailLimits, emailLine, headerMap, longEmailFields, newAttachment } from './email-content.ts'
import { emailStatus, recipientStatus } from './email-status.ts'
import { line, list, mailbox, recipientAddress, timeInput, timestamp, wellFormedString } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { metadata, metadataFilter, shownMetadata } from './metadata.ts'
import { mode } from './mode.ts'
import { pageOf, pageQuery, timeFilters } from './pagination.ts'
import { outcome } from './route.ts'
import { simulatorDomain, simulatorStories } from './simulator.ts'

const c = initContract()

const addresses = (max: number, min = 0) => list(mailbox, { min, max, fault: `must be at most ${max} addresses` })
const anAddressOrMore = 'must be an address or a list of addresses'

const oneOrMore = (description: string) =>
  z.union([mailbox, addresses(emailLimits.recipients, 1)], anAddressOrMore).meta({ description })
const anyNumber = (description: string, max: number) =>
  z.union([mailbox, addresses(max)], anAddressOrMore).meta({ description })

const tag = line(emailLimits.tagCharacters).min(1)

const sendExample = {
  from: 'Postern <hello@example.com>',
  to: ['Ada Lovelace <ada@example.org>'],
  subject: 'Welcome',
  html: '<p>It is good to have you here.</p>',
  text: 'It is good to have you here.',
}

/** One email to be sent. */
export const sendEmail = z
  .strictObject({
    from: mailbox.meta({ description: 'Who it is from. With a live key, at a verified domain of the account.' }),
    to: oneOrMore(
      `Who it is to. At most ${emailLimits.recipients} recipients in \`to\`, \`cc\` and \`bcc\` together; one named twice gets it once.`,
    ),
    cc: anyNumber('Who gets a copy.', emailLimits.recipients).optional(),
    bcc: anyNumber('Who gets a copy without the others seeing it.', emailLimits.recipients).optional(),
    replyTo: anyNumber('Where answers go.', emailLimits.replyTo).optional(),
    subject: emailLine('What it is about.'),
    html: emailContent('The message as HTML. At least one of `html` and `text` is needed.'),
    text: emailContent('The message as plain text.'),
    headers: headerMap.optional(),
    attachments: list(newAttachment, { max: emailLimits.attachments })
      .optional()
      .meta({ description: `Files. At most ${emailLimits.attachmentBytes / 2 ** 20} MiB in all, decoded.` }),
    metadata: metadata.optional(),
    tags: list(tag, { max: emailLimits.tags }).optional().meta({ description: 'Words to find it by.' }),
    audienceId: idSchema(
      'audience',
      'The audience it is written to: each recipient gets a message of their own, with a link to unsubscribe, and none goes to people who did.',
    ).optional(),
    trackOpens: z.boolean().optional().meta({ description: 'Whether to tell of opens. Default: no.' }),
    trackClicks: z.boolean().optional().meta({ description: 'Whether to tell of clicks on links. Default: no.' }),
    scheduledAt: timeInput
      .optional()
      .meta({ description: `When to send it, up to ${emailLimits.scheduleDays} days ahead. Default: at once.` }),
  })
  .meta({ id: 'SendEmail', description: 'The email to send.', example: sendExample })

const acceptedFields = {
  id: idSchema('email', 'Identifies the email.'),
  status: emailStatus,
}

const accepted = z.object(acceptedFields).meta({
  id: 'AcceptedEmail',
  description: 'An email that was stored, to be sent.',
  example: { id: exampleId('email'), status: 'queued' },
})

/** The emails of a batch are judged one by one, so that each can be refused by itself. */
const batch = z
  .strictObject({
    emails: list(z.unknown(), { min: 1, max: emailLimits.batch }).meta({
      override: { items: { $ref: '#/components/schemas/SendEmail' } },
    }),
  })
  .meta({ id: 'SendEmailBatch', description: 'The emails to send.', example: { emails: [sendExample] } })

const batchAnswer = z
  .object({
    data: z
      .array(z.object({ index: z.int().min(0), ...acceptedFields }))
      .meta({ description: 'The emails that were stored, by their index in the request.' }),
    errors: z
      .array(
        z.object({
          index: z.int().min(0),
          code: z.string(),
          message: z.string(),
          details: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
        }),
      )
      .meta({ description: 'Those that were refused, and why. Empty unless the mode is `permissive`.' }),
  })
  .meta({
    id: 'AcceptedEmailBatch',
    description: 'What became of each email of a batch.',
    example: { data: [{ index: 0, id: exampleId('email'), status: 'queued' }], errors: [] },
  })

const emailFields = {
  id: idSchema('email', 'Identifies the email.'),
  mode,
  status: emailStatus,
  from: mailbox,
  to: z.array(mailbox),
  cc: z.array(mailbox),
  bcc: z.array(mailbox),
  subject: z.string(),
  messageId: z.string().meta({
    description:
      'The `Message-ID` of each of its messages, with its angle brackets: what replies name in `In-Reply-To` and mail servers write into their logs.',
  }),
  tags: z.array(z.string()),
  metadata: shownMetadata,
  campaignId: idSchema('campaign', 'The campaign it is part of.').nullable(),
  audienceId: idSchema('audience', 'The audience it is written to.').nullable(),
  scheduledAt: timestamp.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
  completedAt: timestamp.nullable().meta({ description: 'When nothing was left to be done; null before.' }),
}
const emailExample = {
  id: exampleId('email'),
  mode: 'live',
  status: 'delivered',
  from: sendExample.from,
  to: sendExample.to,
  cc: [],
  bcc: [],
  subject: sendExample.subject,
  messageId: `<${exampleId('email').slice('email_'.length)}@example.com>`,
  tags: ['welcome'],
  metadata: { customer: '42' },
  campaignId: null,
  audienceId: null,
  scheduledAt: null,
  createdAt: '2026-03-01T09:30:00.000Z',
  updatedAt: '2026-03-01T09:30:02.000Z',
  completedAt: '2026-03-01T09:30:02.000Z',
}

const email = z.object(emailFields).meta({ id: 'Email', description: 'One message.', example: emailExample })

const recipientExample = {
  address: 'ada@example.org',
  name: 'Ada Lovelace',
  kind: 'to',
  status: 'delivered',
  attemptCount: 1,
  nextAttemptAt: null,
  reason: null,
}

const recipient = z
  .object({
    address: recipientAddress,
    name: z.string().nullable(),
    kind: z.enum(['to', 'cc', 'bcc']),
    status: recipientStatus,
    attemptCount: z.int().min(0),
    nextAttemptAt: timestamp
      .nullable()
      .meta({ description: 'When it is sent to, if it is scheduled, or tried again, if it is deferred; else null.' }),
    reason: z.string().nullable().meta({
      description:
        'Why it is deferred, bounced, failed or suppressed. While it is tried again, why it was deferred. Else null.',
    }),
  })
  .meta({ id: 'EmailRecipient', description: 'One recipient, and how far it is there.', example: recipientExample })

const timelineExample = {
  at: '2026-03-01T09:30:02.000Z',
  type: 'delivered',
  recipient: 'ada@example.org',
  detail: null,
  reply: '250 2.0.0 OK',
  host: 'mx.example.org',
}

const timelineEntry = z
  .object({
    at: timestamp,
    type: z.string().meta({
      description:
        'What happened, such as `queued`, `scheduled`, `sent`, `delivered`, `deferred`, `relayed`, `bounced` or `opened`. `relayed` and `expanded`: a relay passed it on, to a server that does not tell of delivery or to a list. New types may be added.',
    }),
    recipient: recipientAddress.nullable().meta({ description: 'To whom; null: to the email as a whole.' }),
    detail: z.string().nullable().meta({ description: 'What it means, for people.' }),
    reply: z.string().nullable().meta({ description: 'What the mail server said, as it said it.' }),
    host: z.string().nullable().meta({ description: 'Which mail server said it.' }),
  })
  .meta({ id: 'EmailTimelineEntry', description: 'Something that happened to an email.', example: timelineExample })

const emailDetails = z
  .object({
    ...emailFields,
    replyTo: z.array(mailbox),
    html: z.string().nullable(),
    text: z.string().nullable(),
    headers: z.record(z.string(), z.string()),
    attachments: z.array(
      z.object({
        filename: z.string(),
        contentType: z.string(),
        contentId: z.string().nullable(),
        size: z.int().min(0).meta({ description: 'Bytes, decoded.' }),
      }),
    ),
    trackOpens: z.boolean(),
    trackClicks: z.boolean(),
    recipients: z.array(recipient),
    timeline: z.array(timelineEntry).meta({ description: 'What happened, first to last.' }),
  })
  .meta({
    id: 'EmailDetails',
    description: 'One message with its content, its recipients and all that happened to it.',
    example: {
      ...emailExample,
      replyTo: [],
      html: sendExample.html,
      text: sendExample.text,
      headers: {},
      attachments: [{ filename: 'terms.pdf', contentType: 'application/pdf', contentId: null, size: 18_231 }],
      trackOpens: false,
      trackClicks: false,
      recipients: [recipientExample],
      timeline: [timelineExample],
    },
  })

const listQuery = z.strictObject({
  ...pageQuery,
  status: emailStatus.optional(),
  recipient: mailbox.optional().meta({ description: 'Only those to this address.' }),
  tag: tag.optional().meta({ description: 'Only those with this tag.' }),
  metadata: metadataFilter,
  campaign: idSchema('campaign', 'Only those of this campaign.').optional(),
  domain: idSchema('domain', 'Only those sent from this domain of the account.').optional(),
  search: wellFormedString(emailLimits.searchCharacters).min(1).optional().meta({
    description:
      'Only those with a recipient whose address begins so, whose subject begins so, or whose id or `messageId` this is or begins so. Letter case, invisible characters and the number of spaces do not matter. Of a subject, the first 60 characters are compared.',
  }),
  ...timeFilters,
  from: timeInput.optional().meta({ description: 'The former name of `since`.' }),
  mode: mode.optional().meta({ description: 'A key sees its own mode alone: asking for the other returns none.' }),
})

const idParam = z.object({ id: idSchema('email', 'The email.') })
export type SendEmail = z.infer<typeof sendEmail>
export type AcceptedEmail = z.infer<typeof accepted>
export type AcceptedEmailBatch = z.infer<typeof batchAnswer>
export type Email = z.infer<typeof email>
export type EmailDetails = z.infer<typeof emailDetails>
export type EmailListQuery = Omit<z.infer<typeof listQuery>, 'from'>

const simulator = [
  `Recipients at \`${simulatorDomain}\` play what their name says, with either kind of key; what follows a \`+\` in it is free, and any other name bounces:\n`,
  ...Object.entries(simulatorStories).map(([name, meaning]) => `- \`${name}@${simulatorDomain}\`: ${meaning}`),
].join('\n')

const sending = { tag: 'Emails', permission: 'emails:send', hasBody: true, idempotency: 'with-work' } as const

export const emails = c.router({
  send: {
    method: 'POST',
    path: '/v1/emails',
    summary: 'Send an email',
    description: `Stores an email and has it sent. A test key sends nothing: everything is checked, and the status is \`validated\`. ${simulator}`,
    body: sendEmail,
    ...outcome(
      {
        ...sending,
        operationId: 'sendEmail',
        takesAttachments: true,
        longFields: longEmailFields,
        errors: ['rule_violation', 'domain_not_verified', 'public_url_needed', 'audience_not_found'],
      },
      { 202: accepted },
    ),
  },
  sendBatch: {
    method: 'POST',
    path: '/v1/emails/batch',
    summary: 'Send several emails',
    description: `Up to ${emailLimits.batch}, all or none. With \`mode=permissive\` those that can be sent are, and the answer says what is wrong with each of the others.`,
    query: z.strictObject({
      mode: z
        .enum(['strict', 'permissive'])
        .optional()
        .meta({ description: 'Whether one that is refused keeps the others back (`strict`, the default).' }),
    }),
    body: batch,
    ...outcome(
      {
        ...sending,
        operationId: 'sendEmailBatch',
        takesAttachments: true,
        longFields: longEmailFields,
        errors: ['rule_violation', 'domain_not_verified', 'public_url_needed', 'audience_not_found'],
      },
      { 202: batchAnswer },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/emails',
    summary: 'List emails',
    description:
      'Newest first, those of the mode of the key. With `search`, `domain` or `status` a page can have fewer emails than `limit`, even none, and not be the last: go on while there is a `nextCursor`.',
    query: listQuery,
    ...outcome(
      {
        operationId: 'listEmails',
        tag: 'Emails',
        permission: 'emails:read',
        errors: ['rule_violation'],
        deprecations: [formerSince],
      },
      { 200: pageOf(email, 'EmailPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/emails/:id',
    summary: 'Get an email',
    description: 'One email: what it says, how far it is for each recipient, and what the mail servers answered.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'getEmail', tag: 'Emails', permission: 'emails:read', errors: ['not_found'] },
      { 200: emailDetails },
    ),
  },
  update: {
    method: 'PATCH',
    path: '/v1/emails/:id',
    summary: 'Reschedule an email',
    description:
      'Moves a scheduled email to another time. Nothing else of an email changes after it was accepted, its `metadata` neither.',
    pathParams: idParam,
    body: z
      .strictObject({
        scheduledAt: timeInput.meta({ description: `When to send it, up to ${emailLimits.scheduleDays} days ahead.` }),
      })
      .meta({ id: 'UpdateEmail', description: 'The new time.', example: { scheduledAt: '2026-03-02T09:30:00Z' } }),
    ...outcome(
      {
        operationId: 'updateEmail',
        tag: 'Emails',
        permission: 'emails:send',
        hasBody: true,
        errors: ['not_found', 'rule_violation', 'email_not_scheduled'],
      },
      { 200: email },
    ),
  },
  cancel: {
    method: 'POST',
    path: '/v1/emails/:id/cancel',
    summary: 'Cancel an email',
    description: 'Keeps a scheduled email from being sent.',
    pathParams: idParam,
    body: z.strictObject({}).optional(),
    ...outcome(
      { ...sending, operationId: 'cancelEmail', errors: ['not_found', 'email_not_scheduled'] },
      { 200: email },
    ),
  },
})
