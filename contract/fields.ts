import { z } from 'zod'

/** A time of day and date: ISO 8601, UTC, milliseconds. */
export const timestamp = z.iso
  .datetime({ precision: 3 })
  .meta({ description: 'ISO 8601, UTC, with milliseconds.', example: '2026-03-01T09:30:00.000Z' })

/** A time as a client may give it: ISO 8601 with `Z` or an offset. */
export const timeInput = z.iso.datetime({ offset: true }).meta({
  description: 'ISO 8601 with `Z` or an offset.',
  example: '2026-03-01T09:30:00Z',
})

/** Text a person wrote: up to `maxLength` characters, without U+0000, which PostgreSQL cannot store. */
export function text(maxLength: number) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing it is the point
  return z
    .string()
    .max(maxLength)
    .regex(/^[^\u0000]*$/, 'must not contain U+0000')
}

export const emailAddress = z.email().max(254).meta({ description: 'An email address.', example: 'ada@example.com' })
