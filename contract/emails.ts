import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { formerSince } from './deprecations.ts'
import {
  emailContent,
  emailLimits,
  emailLine,
  headerMap,
  longEmailFields,
  newAttachment,
  sendExample,
} from './email-content.ts'
import { email, emailAttachment, emailDetails } from './email-resource.ts'
import { emailStatus } from './email-status.ts'
import { line, list, mailbox, numberInText, timeInput, wellFormedString } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { metadata, metadataFilter } from './metadata.ts'
import { mode } from './mode.ts'
import { pageOf, pageQuery, timeFilters } from './pagination.ts'
import { outcome } from './route.ts'
import { simulatorDomain, simulatorStories } from './simulator.ts'
import { emailTemplate } from './template-variables.ts'

const c = initContract()

const addresses = (max: number, min = 0) => list(mailbox, { min, max, fault: `must be at most ${max} addresses` })
const anAddressOrMore = 'must be an address or a list of addresses'

const oneOrMore = (description: string) =>
  z.union([mailbox, addresses(emailLimits.recipients, 1)], anAddressOrMore).meta({ description })
const anyNumber = (description: string, max: number) =>
  z.union([mailbox, addresses(max)], anAddressOrMore).meta({ description })

const tag = line(emailLimits.tagCharacters).min(1)

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
    subject: emailLine('What it is about. Needed, unless there is a `template`.').optional(),
    html: emailContent(
      'The message as HTML. At least one of `html` and `text` is needed, unless there is a `template`.',
    ),
    text: emailContent('The message as plain text.'),
    template: emailTemplate.optional(),
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
    topicId: idSchema(
      'topic',
      'The topic that it is about: none goes to people who do not get it, and the link to unsubscribe leaves the topic alone. Only with `audienceId`.',
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
export type EmailListQuery = Omit<z.infer<typeof listQuery>, 'from'>

const simulator = [
  `Recipients at \`${simulatorDomain}\` play what their name says, with either kind of key; what follows a \`+\` in it is free, and any other name bounces:\n`,
  ...Object.entries(simulatorStories).map(([name, meaning]) => `- \`${name}@${simulatorDomain}\`: ${meaning}`),
].join('\n')

const sending = { tag: 'Emails', permission: 'emails:send', hasBody: true, idempotency: 'with-work' } as const

const sendingErrors = [
  'rule_violation',
  'domain_not_verified',
  'public_url_needed',
  'audience_not_found',
  'topic_not_found',
  'template_not_found',
  'template_fault',
] as const

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
        errors: sendingErrors,
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
        errors: sendingErrors,
      },
      { 202: batchAnswer },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/emails',
    summary: 'List emails',
    description:
      'Newest first, those of the mode of the key. With a filter a page can have fewer emails than `limit`, even none, and not be the last: go on while there is a `nextCursor`.',
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
  getAttachment: {
    method: 'GET',
    path: '/v1/emails/:id/attachments/:index',
    summary: 'Get an attachment',
    description: 'One file of an email with what is in it. Treat it as what it is: a file from outside.',
    pathParams: z.object({
      id: idSchema('email', 'The email.'),
      index: numberInText({ min: 0, max: emailLimits.attachments - 1 }).meta({
        description: 'Its place in the `attachments` of the email, from 0.',
        example: 0,
      }),
    }),
    ...outcome(
      { operationId: 'getEmailAttachment', tag: 'Emails', permission: 'emails:read', errors: ['not_found'] },
      { 200: emailAttachment },
    ),
  },
  resend: {
    method: 'POST',
    path: '/v1/emails/:id/resend',
    summary: 'Send an email again',
    description:
      'Sends a new email with the content, the recipients, the tags and the metadata of one that has ended, at once. It is judged as a new one: recipients that are suppressed now get nothing. The answer names the new email; the old one stays as it is.',
    pathParams: idParam,
    body: z.strictObject({}).optional(),
    ...outcome(
      {
        ...sending,
        operationId: 'resendEmail',
        errors: [
          'not_found',
          'rule_violation',
          'domain_not_verified',
          'public_url_needed',
          'audience_not_found',
          'topic_not_found',
          'email_not_ended',
        ],
      },
      { 202: accepted },
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
