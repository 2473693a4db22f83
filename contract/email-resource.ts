import { z } from 'zod'
import { sendExample } from './email-content.ts'
import { emailStatus, recipientStatus } from './email-status.ts'
import { mailbox, recipientAddress, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { shownMetadata } from './metadata.ts'
import { mode } from './mode.ts'

/*
 * An email as the API shows it: in lists, with all that happened to it, and its files.
 */

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
  topicId: idSchema('topic', 'The topic that it is about.').nullable(),
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
  topicId: null,
  scheduledAt: null,
  createdAt: '2026-03-01T09:30:00.000Z',
  updatedAt: '2026-03-01T09:30:02.000Z',
  completedAt: '2026-03-01T09:30:02.000Z',
}

export const email = z.object(emailFields).meta({ id: 'Email', description: 'One message.', example: emailExample })

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

const attachmentFields = {
  filename: z.string(),
  contentType: z.string(),
  contentId: z.string().nullable(),
  size: z.int().min(0).meta({ description: 'Bytes, decoded.' }),
}
const attachmentExample = { filename: 'terms.pdf', contentType: 'application/pdf', contentId: null, size: 18_231 }

export const emailDetails = z
  .object({
    ...emailFields,
    replyTo: z.array(mailbox),
    html: z.string().nullable(),
    text: z.string().nullable(),
    headers: z.record(z.string(), z.string()),
    attachments: z.array(z.object(attachmentFields)),
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
      attachments: [attachmentExample],
      trackOpens: false,
      trackClicks: false,
      recipients: [recipientExample],
      timeline: [timelineExample],
    },
  })

export const emailAttachment = z
  .object({
    ...attachmentFields,
    content: z.string().meta({
      description: 'What is in it, in base64 (RFC 4648 §4), padded and in one line.',
      contentEncoding: 'base64',
    }),
  })
  .meta({
    id: 'EmailAttachment',
    description: 'A file of an email.',
    example: { ...attachmentExample, content: 'JVBERi0xLjcK' },
  })

export type Email = z.infer<typeof email>
export type EmailDetails = z.infer<typeof emailDetails>
export type EmailAttachment = z.infer<typeof emailAttachment>
