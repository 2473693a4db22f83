import { z } from 'zod'
import { line } from './fields.ts'

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
  /** Emails in one request. */
  batch: 100,
} as const

/** One line of a message. */
export const emailLine = (description: string) =>
  line(emailLimits.subjectOctets)
    .min(1)
    .meta({ description: `${description} At most ${emailLimits.subjectOctets} octets in UTF-8.` })

/** The message itself. How long it may be is not in the schema: it is counted in bytes. */
export const emailContent = (description: string) =>
  z
    .string()
    .refine((value) => !value.includes('\u0000'), 'must not contain U+0000')
    .meta({
      description: `${description} At most ${emailLimits.contentBytes / 2 ** 20} MiB.`,
      // Not a pattern that runs: looking for the one character is enough.
      pattern: '^[^\\u0000]*$',
    })
    .nullable()
    .optional()

/** The map leaves `__proto__` out of what it reads: refused, it is not lost without a word. */
function refuseProto(given: Record<string, string>, { addIssue }: z.RefinementCtx): Record<string, string> {
  if (Object.hasOwn(Object(given), '__proto__')) {
    addIssue({ code: 'custom', path: ['__proto__'], message: 'cannot be the name of a header here' })
  }
  return given
}

export const headerMap = z.preprocess(
  refuseProto,
  z.record(z.string(), z.string()).meta({
    description: `More headers, by name: at most ${emailLimits.headers}, each at most ${emailLimits.headerOctets} octets long, ${emailLimits.headersOctets / 2 ** 10} KiB together. Those that the fields of an email make (\`From\`, \`Subject\`, \`Content-Type\`, …) and those that mail servers write (\`Received\`, \`DKIM-Signature\`, …) are refused.`,
    example: { 'X-Order-Number': '4711' },
  }),
)

const token = "[A-Za-z0-9!#$%&'*+.^_`|~-]"

/** A name that is no path, nor only dots. */
const filename = {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
  pattern: /^[^/\\\u0000-\u001f\u007f]*[^./\\\u0000-\u001f\u007f][^/\\\u0000-\u001f\u007f]*$/,
  fault: 'must be the name of a file: without a path, line breaks or other control characters',
}

/** A file, as a client sends it. */
export const newAttachment = z
  .strictObject({
    filename: line(255, filename).meta({ description: 'Its name, without a path.', example: 'terms.pdf' }),
    content: z
      .string()
      // Not a pattern that runs: on 50 MiB it would exhaust the stack of the matcher. See `decodeBase64`.
      .meta({
        description: 'What is in it, in base64 (RFC 4648 §4), padded and in one line.',
        pattern: '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$',
        contentEncoding: 'base64',
        example: 'JVBERi0xLjcK',
      }),
    contentType: z
      .string()
      .max(255)
      .regex(
        new RegExp(`^${token}+/${token}+(; ?${token}+=${token}+)*$`),
        'must be a media type such as application/pdf',
      )
      .optional()
      .meta({ description: 'Default: what the end of its name says.', example: 'application/pdf' }),
    contentId: z
      .string()
      .max(255)
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
