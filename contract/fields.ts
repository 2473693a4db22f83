import { z } from 'zod'

/*
 * How a field of a request is made. A client decides how long a value is, so its length is looked at before
 * anything else is: a pattern, a count or a rule on tens of megabytes stops the process for everybody.
 *
 * - A string is made of `boundedString`, or of what is made of it: `text` (several lines, for people), `line`
 *   (one line), `mailbox`, `emailAddress`, `timeInput`, `idSchema`. Never of `z.string()`, nor of a format such
 *   as `z.email()` or `z.url()`, whose pattern runs before a `.max()` does.
 * - An array is made of `list`, an object with names of the client's choice of `record`. Both count before they
 *   read an entry; `z.array().max()` counts after it has read them all.
 * - What follows (`.min()`, `.regex()`, `.refine()`) sees values within the bound only.
 * - A value that has to be changed before it is read (`z.preprocess`) is bounded by `preprocessBounded`.
 *
 * `boundOf` tells the bound of a schema. A test walks the contract and refuses a field without one.
 */

/** The most a value may be: characters (code points) or octets (in UTF-8) of a string, entries of a list or record. */
export type Bound = { max: number; unit: 'characters' | 'octets' | 'entries' }

/** By the check or the transformation that looks first. */
const bounds = new WeakMap<object, Bound>()

/** The bound that a string, list or record of the contract looks at first; null: it has none. */
export function boundOf(schema: z.core.$ZodType): Bound | null {
  const { def } = schema._zod
  // A format is a check of its own, which runs before those in the list.
  if ('check' in def) return null
  if (schema instanceof z.ZodPipe) return bounds.get(schema.def.in) ?? null
  const [first] = def.checks ?? []
  return first === undefined ? null : (bounds.get(first) ?? null)
}

/** Returns true when `value` has at most `max` code points. Counts no further than it must. */
function isWithin(value: string, max: number): boolean {
  if (value.length <= max) return true
  if (value.length > 2 * max) return false
  let characters = 0
  for (const _ of value) if (++characters > max) return false
  return true
}

/** Up to here the characters of a text are counted where its length does not tell, in less than a millisecond. */
const maxCounted = 65_536

type StringOptions = {
  /**
   * `octets`: the length in UTF-16 units is at most `max`. It is a lower bound of the length in UTF-8, which the feature
   * that stores the value checks. Required above 65,536, because characters are counted one by one. Default: `characters`.
   */
  unit?: 'characters' | 'octets'
  /** The message for a value that is too long. Default: `must be at most … characters`. */
  fault?: string
  /** Whether the published schema says the bound. Default: yes. Not where a pattern says it exactly. */
  isPublished?: boolean
}

/**
 * A string of at most `max` characters. Characters are code points, as in JSON Schema; JavaScript would
 * count an emoji as two. Nothing else looks at a longer one.
 */
export function boundedString(max: number, options: StringOptions = {}) {
  const { unit = 'characters', isPublished = true } = options
  if (unit === 'characters' && max > maxCounted) throw new Error(`bound a text of ${max} characters in octets`)
  const bound = z.refine<string>(
    // UTF-8 needs an octet or more for every unit of UTF-16.
    unit === 'octets' ? (value) => value.length <= max : (value) => isWithin(value, max),
    { error: options.fault ?? `must be at most ${max} ${unit}`, abort: true },
  )
  bounds.set(bound, { max, unit })
  const string = z.string().check(bound)
  return isPublished ? string.meta({ maxLength: max }) : string
}

const halfCharacter = 'must not contain half of a surrogate pair: send whole characters'

/** A bounded string of whole characters: half of a surrogate pair can be neither stored nor sent as UTF-8. */
export function wellFormedString(max: number, options: StringOptions = {}) {
  return boundedString(max, options).refine((value) => value.isWellFormed(), { error: halfCharacter, abort: true })
}

/**
 * Preprocesses a value with `look`, and parses the result with `schema`. `look` must bound the value itself, and report
 * one above `bound`; then `schema` does not see it.
 */
function preprocessBounded<T extends z.ZodType>(
  bound: Bound,
  look: (value: unknown, context: z.RefinementCtx) => unknown,
  schema: T,
) {
  const piped = z.preprocess(look, schema)
  // zod takes every preprocessed field for one that may be left out, and publishes unions with it as optional.
  piped.def.in._zod.optin = schema._zod.optin
  bounds.set(piped.def.in, bound)
  return piped
}

/**
 * A whole number in the text of a query or a path. Only digits are one: coercing would take ` 5`, `0x5` and `5e0` for one
 * too.
 */
export function numberInText({ min, max }: { min: number; max: number }) {
  const fault = `must be a whole number from ${min} to ${max}`
  return preprocessBounded(
    { max: maxDigits, unit: 'characters' },
    (value) => (typeof value === 'string' && value.length <= maxDigits && /^\d+$/.test(value) ? Number(value) : value),
    z.int(fault).min(min, fault).max(max, fault),
  )
}

const maxDigits = 20

/** A list of `min` to `max` entries, which are not looked at where there are more. */
export function list<T extends z.ZodType>(
  entry: T,
  { min = 0, max, fault, minFault }: { min?: number; max: number; fault?: string; minFault?: string },
) {
  const array = z.array(entry).max(max)
  return preprocessBounded(
    { max, unit: 'entries' },
    (value, { addIssue }) => {
      if (Array.isArray(value) && value.length > max) {
        const tooMany = { code: 'too_big', origin: 'array', maximum: max, inclusive: true, input: [] } as const
        addIssue(fault === undefined ? tooMany : { ...tooMany, message: fault })
      }
      return value
    },
    min === 0 ? array : array.min(min, minFault),
  )
}

/** How large a tree may be, such as conditions within conditions. */
type TreeOptions = {
  /** Most nodes, the first among them. */
  maxNodes: number
  /** Most nodes from the first to a last one. */
  maxDepth: number
  /** The error message for a tree above the limits. */
  fault: string
  /** Returns the nodes directly within a value, which may be anything. It returns none of a list that is too long. */
  childrenOf(value: unknown): readonly unknown[]
}

/** A tree of nodes that `node` reads. Of one that is too large, nothing is looked at but how it branches. */
export function tree<T extends z.ZodType>(node: T, { maxNodes, maxDepth, fault, childrenOf }: TreeOptions) {
  return preprocessBounded(
    { max: maxNodes, unit: 'entries' },
    (value, { addIssue }) => {
      let count = 0
      let level: readonly unknown[] = [value]
      for (let depth = 1; level.length > 0; depth++) {
        count += level.length
        if (depth > maxDepth || count > maxNodes) {
          // A schema can state neither.
          addIssue({ code: 'custom', message: fault, params: { isRule: true }, input: {} })
          break
        }
        level = level.flatMap(childrenOf)
      }
      return value
    },
    node,
  )
}

/** The limits of a record, and the word for its entries in error messages. */
type RecordOptions = {
  maxEntries: number
  /** The message for a record with more entries. */
  fault: string
  maxNameCharacters: number
  /** The message for a longer name. */
  nameFault: string
  /** A further rule for names. Default: any text within the bound. */
  name?: z.ZodType<string, string>
}

/** An object with names of the client's choice, each with a value such as a string. */
export function record<T extends z.ZodType>(
  value: T,
  {
    maxEntries,
    fault,
    maxNameCharacters,
    nameFault,
    name: nameSchema = boundedString(maxNameCharacters),
  }: RecordOptions,
) {
  return preprocessBounded(
    { max: maxEntries, unit: 'entries' },
    (given, { addIssue }) => {
      if (typeof given !== 'object' || given === null) return given
      const names = Object.keys(given)
      if (names.length > maxEntries) addIssue({ code: 'custom', message: fault, input: {} })
      else {
        for (const name of names) {
          if (!isWithin(name, maxNameCharacters))
            addIssue({ code: 'custom', path: [name], message: nameFault, input: '' })
          else if (!name.isWellFormed()) addIssue({ code: 'custom', path: [name], message: halfCharacter, input: '' })
          // The map would leave it out: refused, it is not lost without a word.
          else if (name === '__proto__') {
            const message = 'cannot be a name here'
            addIssue({ code: 'custom', path: [name], message, params: { isRule: true }, input: '' })
          }
        }
      }
      return given
    },
    z.record(nameSchema, value).meta({ maxProperties: maxEntries }),
  )
}

/** A time of day and date: ISO 8601, UTC, milliseconds. */
export const timestamp = z.iso
  .datetime({ precision: 3 })
  .meta({ id: 'Timestamp', description: 'ISO 8601, UTC, with milliseconds.', example: '2026-03-01T09:30:00.000Z' })

const timeFault = 'must be a time such as 2026-03-01T09:30:00Z or 2026-03-01T10:30:00+01:00'

/** A time as a client may give it: ISO 8601 with `Z` or an offset. */
export const timeInput = boundedString(64, { fault: timeFault })
  .check(z.iso.datetime({ offset: true, error: faultOfTime }))
  .meta({
    id: 'Time',
    description: 'ISO 8601 with `Z` or an offset. In a query, the `+` of an offset is written `%2B`.',
    example: '2026-03-01T09:30:00Z',
  })

function faultOfTime({ code, input }: { code: string; input?: unknown }): string | undefined {
  if (code !== 'invalid_format') return undefined
  // A `+` in a query is read as a space.
  const hint = /T.* \d\d:?\d\d$/.test(String(input)) ? ', with the + written as %2B in a query' : ''
  return `${timeFault}${hint}`
}

/** Text a person wrote: up to `maxLength` characters, without U+0000, which PostgreSQL cannot store. */
export function text(maxLength: number) {
  return wellFormedString(maxLength).regex(noNul, 'must not contain U+0000')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing it is the point
const noNul = /^[^\u0000]*$/

/** The address of a mailbox as mail servers take it: RFC 5321 §4.5.3.1 (64 characters before the `@`), RFC 1123 §2.1. */
const mailboxPattern =
  /^(?=[^@]{1,64}@)[A-Za-z0-9_'+-]+(?:\.[A-Za-z0-9_'+-]+)*@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}$/

export const emailAddress = boundedString(254)
  .check(z.email({ pattern: mailboxPattern }))
  .meta({ id: 'EmailAddress', description: 'An email address.', example: 'ada@example.com' })

/** Line breaks of Unicode among them: U+0085, U+2028 and U+2029. */
const noControls = {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
  pattern: /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$/,
  fault: 'must not contain line breaks or other control characters',
}

/** One line of text: as `text`, but without control characters, line breaks among them, or of another pattern. */
export function line(maxLength: number, { pattern, fault } = noControls) {
  return wellFormedString(maxLength).regex(pattern, fault)
}

/** Characters of a search: those of an address. */
const maxSearch = 254

/** Returns the schema for a search of a list of people: one line, with a character that is no space. */
export function searchText(description: string) {
  return line(maxSearch)
    .regex(/[^ ]/, 'must have a character that is not a space')
    .meta({ description, example: 'ada' })
}

/*
 * The grammar of a mailbox in parts. They are written so that JavaScript, Python and Rust read them alike: without
 * look-around, `\s` and `\p{…}`. The first character tells which alternative it is, so that matching is linear.
 */
const blanks = String.raw`\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000`
const controls = String.raw`\u0000-\u001f\u007f-\u009f\u2028\u2029`
const atext = String.raw`[^${controls} ${blanks}"(),.:;<>@\u005b-\u005d]`
const quotedCharacter = String.raw`(?:[^"\u005c${controls}]|\u005c[^${controls}])`
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const beyondAscii = String.raw`[^\u0000-\u009f\u2028\u2029${blanks}]`
const domain = String.raw`(?:(?:${label}\.)+${label}|[A-Za-z0-9.-]*${beyondAscii}(?:[A-Za-z0-9.-]|${beyondAscii})*)`
const address = String.raw`(?:${atext}+(?:\.${atext}+)*|"${quotedCharacter}+")@${domain}`
const displayName = `(?:"${quotedCharacter}*"|${atext}|[. ${blanks}])*`
const around = String.raw`[\u0009-\u000d ${blanks}\u2028\u2029\ufeff]*`

/**
 * The form of a mailbox: RFC 5322 §3.4 with RFC 6532, without comments, groups, routes and address literals. Every
 * mailbox the server takes has it. What has it and is refused all the same breaks a rule: too many octets, an
 * internationalised domain that is none, a number at the end of the domain. For bounded text only.
 */
export const mailboxForm = new RegExp(`^${around}(?:${address}|${displayName}<${address}>)${around}$`, 'u')

/**
 * A mailbox as a mail header has it: an address, or a name and an address in angle brackets. The grammar is
 * more than a pattern can say; see `server/message/mailbox.ts`, which also tells what is wrong with one.
 */
export const mailbox = wellFormedString(500).min(1).meta({
  id: 'Mailbox',
  format: 'mailbox',
  pattern: mailboxForm.source,
  description:
    'An address, `ada@example.com`, or a name with one, `Ada Lovelace <ada@example.com>`: RFC 5321 and 5322, internationalised ones too. At most 64 octets before the `@` and 254 in all.',
  example: 'Ada Lovelace <ada@example.com>',
})

/** An address of an email as it was given, internationalised ones too. */
export const recipientAddress = z.string().meta({ description: 'The address.', example: 'ada@example.com' })
