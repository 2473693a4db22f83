import { z } from 'zod'

// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing it is the point
const noNul = /^[^\u0000]*$/

/** A time of day and date: ISO 8601, UTC, milliseconds. */
export const timestamp = z.iso
  .datetime({ precision: 3 })
  .meta({ id: 'Timestamp', description: 'ISO 8601, UTC, with milliseconds.', example: '2026-03-01T09:30:00.000Z' })

/** A time as a client may give it: ISO 8601 with `Z` or an offset. */
export const timeInput = z.iso.datetime({ offset: true, error: faultOfTime }).meta({
  id: 'Time',
  description: 'ISO 8601 with `Z` or an offset. In a query, the `+` of an offset is written `%2B`.',
  example: '2026-03-01T09:30:00Z',
})

function faultOfTime({ code, input }: { code: string; input?: unknown }): string | undefined {
  if (code !== 'invalid_format') return undefined
  // What a `+` in a query is read as.
  const hint = /T.* \d\d:?\d\d$/.test(String(input)) ? ', with the + written as %2B in a query' : ''
  return `must be a time such as 2026-03-01T09:30:00Z or 2026-03-01T10:30:00+01:00${hint}`
}

/**
 * Text a person wrote: up to `maxLength` characters, without U+0000, which PostgreSQL cannot store.
 * Characters are code points, as in JSON Schema; JavaScript would count an emoji as two.
 */
export function text(maxLength: number) {
  return z
    .string()
    .refine((value) => [...value].length <= maxLength, `must be at most ${maxLength} characters`)
    .regex(noNul, 'must not contain U+0000')
    .meta({ maxLength })
}

/** The address of a mailbox as mail servers take it: RFC 5321 §4.5.3.1 (64 characters before the `@`), RFC 1123 §2.1. */
const mailboxPattern =
  /^(?=[^@]{1,64}@)[A-Za-z0-9_'+-]+(?:\.[A-Za-z0-9_'+-]+)*@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}$/

export const emailAddress = z
  .email({ pattern: mailboxPattern })
  .max(254)
  .meta({ id: 'EmailAddress', description: 'An email address.', example: 'ada@example.com' })

const noControls = {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
  pattern: /^[^\u0000-\u001f\u007f]*$/,
  fault: 'must not contain line breaks or other control characters',
}

/** One line of text: as `text`, but without control characters, line breaks among them, or of another pattern. */
export function line(maxLength: number, { pattern, fault } = noControls) {
  return z
    .string()
    .refine((value) => [...value].length <= maxLength, `must be at most ${maxLength} characters`)
    .regex(pattern, fault)
    .meta({ maxLength })
}

/**
 * A mailbox as a mail header has it: an address, or a name and an address in angle brackets. The grammar is
 * more than a pattern can say; see `server/emails/mailbox.ts`.
 */
export const mailbox = z.string().min(1).max(500).meta({
  id: 'Mailbox',
  format: 'mailbox',
  description:
    'An address, `ada@example.com`, or a name with one, `Ada Lovelace <ada@example.com>`: RFC 5321 and 5322, internationalised ones too. At most 64 octets before the `@` and 254 in all.',
  example: 'Ada Lovelace <ada@example.com>',
})

/** An address of an email as it was given, internationalised ones too. */
export const recipientAddress = z.string().meta({ description: 'The address.', example: 'ada@example.com' })
