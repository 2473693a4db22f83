import { z } from 'zod'
import { timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { mode } from './mode.ts'
import { pageQuery } from './pagination.ts'

/* The schemas that captured and inbound messages share. */

/** Shown in a list. */
export const storedMessageFields = {
  mode,
  emailId: idSchema('email', 'The email it is of.')
    .nullable()
    .meta({ description: 'The email it is of, as its return path says.' }),
  mailFrom: z.string().meta({ description: 'The return path it came with; empty: none.' }),
  recipients: z.array(z.string()).meta({ description: 'Whom it was handed over for, which no header needs to say.' }),
  from: z.string().nullable().meta({ description: 'The `From` header, decoded.' }),
  subject: z.string().nullable().meta({ description: 'The `Subject` header, decoded.' }),
  size: z.int().min(0).meta({ description: 'Bytes.' }),
  createdAt: timestamp,
}

const header = z
  .object({
    name: z.string().meta({ description: 'As it is written.' }),
    value: z.string().meta({ description: 'As it is written, in one line.' }),
  })
  .meta({
    id: 'MessageHeader',
    description: 'One header of a message.',
    example: { name: 'MIME-Version', value: '1.0' },
  })

const attachmentFields = {
  filename: z.string().nullable(),
  contentType: z.string(),
  contentId: z.string().nullable().meta({ description: 'What HTML names it by.' }),
  size: z.int().min(0).meta({ description: 'Bytes, decoded.' }),
}
const attachmentExample = { filename: 'terms.pdf', contentType: 'application/pdf', contentId: null, size: 48_213 }

const attachment = z.object(attachmentFields).meta({
  id: 'MessageAttachment',
  description: 'A file in a message. Its content is in the source.',
  example: attachmentExample,
})

export const messageAttachmentWithContent = z
  .object({
    ...attachmentFields,
    content: z.string().meta({
      description: 'What is in it, in base64 (RFC 4648 §4), padded and in one line.',
      contentEncoding: 'base64',
    }),
  })
  .meta({
    id: 'MessageAttachmentWithContent',
    description: 'A file of a message with what is in it.',
    example: { ...attachmentExample, content: 'JVBERi0xLjcK' },
  })

/** Most files of a message that can be read one by one. */
export const maxMessageAttachments = 1_000

/** The fields of a single message, in addition to those in a list. */
export const storedMessageContent = {
  headers: z.array(header).meta({ description: 'All, in their order.' }),
  text: z.string().nullable(),
  html: z.string().nullable(),
  attachments: z.array(attachment),
  source: z.string().meta({ description: 'The whole message, byte for byte, in base64.' }),
}

export const storedMessageListQuery = z.strictObject({
  ...pageQuery,
  emailId: idSchema('email', 'Only those of this email.').optional(),
})

export type MessageAttachmentWithContent = z.infer<typeof messageAttachmentWithContent>
export type StoredMessageListQuery = z.infer<typeof storedMessageListQuery>

export const storedMessageExample = {
  mode: 'live',
  emailId: exampleId('email'),
  mailFrom: 'b.01jqz4x7m8e5v9t2k6r3w0y1ab@send.example.com',
  recipients: ['ada@example.org'],
  from: 'Shop <shop@example.com>',
  subject: 'Your order',
  size: 124,
  createdAt: '2026-03-01T09:30:00.000Z',
}

export const storedContentExample = {
  headers: [{ name: 'Subject', value: 'Your order' }],
  text: 'Thank you.',
  html: null,
  attachments: [],
  source: 'U3ViamVjdDogWW91ciBvcmRlcg0KDQpUaGFuayB5b3Uu',
}
