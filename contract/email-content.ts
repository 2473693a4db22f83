import { z } from 'zod'
import { boundedString, line, record, wellFormedString } from './fields.ts'

/** How much an email may be. */
export const emailLimits = {
  /** In to, cc and bcc together. */
  recipients: 50,
  replyTo: 10,
  subjectOctets: 998,
  /** Of html and of text, each. */
  contentBytes: 10 * 2 ** 20,
  attachments: 100,
  /** Of all attachments together, decoded. */
  attachmentBytes: 40 * 2 ** 20,
  headers: 50,
  /** Of the name and the value of one header together. */
  headerOctets: 998,
  /** Of all headers together. */
  headersOctets: 32 * 2 ** 10,
  tags: 10,
  tagCharacters: 64,
  scheduleDays: 30,
  searchCharacters: 1_000,
  /** Emails in one request. */
  batch: 100,
} as const

/** A message, for examples. */
export const sendExample = {
  from: 'Postern <hello@example.com>',
  to: ['Ada Lovelace <ada@example.org>'],
  subject: 'Welcome',
  html: '<p>It is good to have you here.</p>',
  text: 'It is good to have you here.',
}

/** Characters of the largest file in base64. */
const maxBase64Length = 4 * Math.ceil(emailLimits.attachmentBytes / 3)

/** The fields of an email that may be long, and how long: its HTML, its text, and what is in its files. */
export const longEmailFields = {
  html: emailLimits.contentBytes,
  text: emailLimits.contentBytes,
  content: maxBase64Length,
} as const

/** One line of a message. */
export const emailLine = (description: string) =>
  line(emailLimits.subjectOctets)
    .min(1)
    .meta({ description: `${description} At most ${emailLimits.subjectOctets} octets in UTF-8.` })

/** The message itself. The schema bounds it roughly; `server/emails/validate-email.ts` counts its bytes. */
export const emailContent = (description: string) =>
  wellFormedString(emailLimits.contentBytes, {
    unit: 'octets',
    fault: `must be at most ${emailLimits.contentBytes} bytes in UTF-8`,
  })
    .refine((value) => !value.includes('\u0000'), 'must not contain U+0000')
    .meta({
      description: `${description} At most ${emailLimits.contentBytes / 2 ** 20} MiB.`,
      // Not a pattern that runs: looking for the one character is enough.
      pattern: '^[^\\u0000]*$',
    })
    .nullable()
    .optional()

const headerFault = `must be at most ${emailLimits.headerOctets} octets long with its name`

export const headerMap = record(wellFormedString(emailLimits.headerOctets, { unit: 'octets', fault: headerFault }), {
  maxEntries: emailLimits.headers,
  fault: `must be at most ${emailLimits.headers} headers`,
  maxNameCharacters: emailLimits.headerOctets,
  nameFault: headerFault,
}).meta({
  description: `More headers, by name: at most ${emailLimits.headers}, each at most ${emailLimits.headerOctets} octets long, ${emailLimits.headersOctets / 2 ** 10} KiB together. Those that the fields of an email make (\`From\`, \`Subject\`, \`Content-Type\`, …) and those that mail servers write (\`Received\`, \`DKIM-Signature\`, …) are refused.`,
  example: { 'X-Order-Number': '4711' },
})

const token = "[A-Za-z0-9!#$%&'*+.^_`|~-]"

/** Controls, and line breaks of Unicode: as a line refuses them. */
const control = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029'

/** A name that is no path, nor only dots. */
const filename = {
  pattern: new RegExp(`^[^/\\\\${control}]*[^./\\\\${control}][^/\\\\${control}]*$`),
  fault: 'must be the name of a file: without a path, line breaks or other control characters',
}

/** A file, as a client sends it. */
export const newAttachment = z
  .strictObject({
    filename: line(255, filename).meta({ description: 'Its name, without a path.', example: 'terms.pdf' }),
    content: boundedString(maxBase64Length, {
      unit: 'octets',
      fault: `must be at most ${emailLimits.attachmentBytes} bytes, decoded`,
    })
      // Not a pattern that runs: on 50 MiB it would exhaust the stack of the matcher. See `decodeBase64`.
      .meta({
        description: 'What is in it, in base64 (RFC 4648 §4), padded and in one line.',
        pattern: '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$',
        contentEncoding: 'base64',
        example: 'JVBERi0xLjcK',
      }),
    contentType: boundedString(255)
      .regex(
        new RegExp(`^${token}+/${token}+(; ?${token}+=${token}+)*$`),
        'must be a media type such as application/pdf',
      )
      .optional()
      .meta({ description: 'Default: what the end of its name says.', example: 'application/pdf' }),
    contentId: boundedString(255)
      .regex(/^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.@-]+$/, 'must be letters, digits and the marks of an address')
      .optional()
      .meta({
        description: 'Shows it within the HTML, where it is named as `cid:` and this.',
        example: 'logo',
      }),
  })
  .meta({
    id: 'NewAttachment',
    description: 'A file to go with an email.',
    example: { filename: 'terms.pdf', content: 'JVBERi0xLjcK' },
  })
