import { setImmediate as nextTurn } from 'node:timers/promises'
import { DomainError, invalidField } from '../shared/errors.ts'

/*
 * JSON from clients is parsed in steps, since `JSON.parse` and decoding UTF-8 block the event loop while they run: a
 * quarter of a second for 60 MB. First, all bytes are scanned for long strings, slice by slice, yielding to the event
 * loop between slices. Then the text without these strings, which is short, is parsed at once. Then each long string
 * is decoded, slice by slice too, and put in its place.
 */

/** Limits of a JSON text. */
export type JsonBounds = {
  /** Names of fields, at any depth, whose strings may be long, with their most UTF-16 code units. */
  longFields: Readonly<Record<string, number>>
  /** Most bytes, as written, of a string in any other field. A longer one is replaced by `tooLong`. */
  maxStringBytes: number
  /** Most bytes of the text without long strings. */
  maxOtherBytes: number
  /** Most names and values. */
  maxValues: number
  /** Deepest nesting of objects and lists. */
  maxDepth: number
}

/** Length of the replacement of a string that is too long. No field that is not in `longFields` allows this length. */
export const tooLongLength = 65_536
const tooLong = 'x'.repeat(tooLongLength)
/** Most bytes of a name in an object. */
const maxNameBytes = 8_192
/** Bytes up to which a text is parsed at once, which is faster than scanning it first. */
const smallBytes = 16_384
/** Bytes that are scanned or decoded before yielding to the event loop, which takes a few milliseconds. */
const defaultSliceBytes = 1_048_576
/** Strings of long fields up to this many bytes are parsed with the rest of the text. */
const minLongBytes = 1_024

/** The bytes between the quotation marks of a long string. */
type LongString = {
  start: number
  end: number
  /** Positions to cut at: never in an escape, but perhaps inside a character of several bytes. */
  marks: readonly number[]
  /** True when it is printable ASCII without escapes, so that each byte is one character. */
  isPlain: boolean
  /** Most UTF-16 code units that its field may have. Decoding stops beyond. Null when it is already too long. */
  maxLength: number | null
}

/**
 * Parses a JSON text as `JSON.parse` does, except that strings that are too long are cut or replaced. Yields to the
 * event loop, so that a large text does not block other requests.
 *
 * Throws a DomainError: `malformed_json` when the bytes are not JSON in UTF-8, `payload_too_large` beyond `bounds`, and
 * `validation_error` when objects and lists are nested too deep.
 *
 * @param sliceBytes Bytes to process before yielding. Default: 1 MiB.
 */
export async function readJson(json: Buffer, bounds: JsonBounds, sliceBytes = defaultSliceBytes): Promise<unknown> {
  // A small text is within all bounds of this function but the depth. The schema checks the length of its strings.
  if (json.length <= Math.min(smallBytes, sliceBytes)) return withinDepth(parse(json), bounds.maxDepth)
  const walk = createWalk(json, bounds)
  for (let from = 0; from < json.length; from += sliceBytes) {
    walk.continueTo(Math.min(from + sliceBytes, json.length))
    if (json.length > sliceBytes) await nextTurn()
  }
  const strings = walk.end()
  const rest = strings.length === 0 ? json : withoutStrings(json, strings)
  if (rest.length > bounds.maxOtherBytes) throw tooMuch(`${bounds.maxOtherBytes} bytes beside its long texts`)
  if (strings.length === 0) return parse(json)
  const value = parse(rest, 'position')
  const texts: string[] = []
  for (const string of strings) texts.push(await decode(json, string))
  return restore(value, texts)
}

/** Returns a value that is not nested too deep: `JSON.stringify` cannot write a few thousand levels. */
function withinDepth(value: unknown, maxDepth: number): unknown {
  let level = [value].filter(isNesting)
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > maxDepth) throw tooDeep(maxDepth)
    level = level.flatMap((one) => Object.values(one).filter(isNesting))
  }
  return value
}

function isNesting(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function tooDeep(maxDepth: number): DomainError {
  return invalidField('body', `must not be nested more than ${maxDepth} deep`)
}

/** Creates an incremental scanner that finds the long strings and checks the bounds. */
function createWalk(json: Buffer, { longFields, maxStringBytes, maxValues, maxDepth }: JsonBounds) {
  const strings: LongString[] = []
  const longNames = new Map(Object.entries(longFields))
  /** For each open level: true for an object, false for a list or the top. */
  const isObject: boolean[] = [false]
  let index = 0
  let values = 0
  /** Start of the string that is being scanned; -1 outside of strings. */
  let start = -1
  let marks: number[] = []
  let isPlain = true
  /** True when the next string is a name in an object. */
  let isName = false
  /** Most UTF-16 code units of the next value when its field is a long one; otherwise null. */
  let maxLength: number | null = null

  function open(opensObject: boolean): void {
    isObject.push(opensObject)
    if (isObject.length - 1 > maxDepth) throw tooDeep(maxDepth)
    isName = opensObject
    maxLength = null
    count()
  }

  function count(): void {
    if (++values > maxValues) throw tooMuch(`${maxValues} names and values`)
  }

  function endString(): void {
    const length = index - start
    if (isName) {
      if (length > maxNameBytes) throw tooMuch(`${maxNameBytes} bytes in the name of a field`)
      maxLength = longNames.get(nameIn(json.subarray(start, index))) ?? null
    } else {
      if (length > (maxLength === null ? maxStringBytes : minLongBytes)) {
        strings.push({ start, end: index, marks: [...marks], isPlain, maxLength })
      }
      maxLength = null
    }
    start = -1
    if (marks.length > 0) marks = []
  }

  return {
    continueTo(end: number): void {
      if (start >= 0) marks.push(index)
      while (index < end) {
        const byte = json[index]
        if (start >= 0) {
          if (byte === quote) endString()
          else if (byte === backslash) {
            isPlain = false
            // Skips the whole escape, so that no mark is inside one.
            index += json[index + 1] === letterU ? 5 : 1
          } else if (byte === undefined || byte < space || byte > tilde) isPlain = false
        } else if (byte === quote) {
          start = index + 1
          isPlain = true
        } else if (byte === comma) {
          isName = isObject.at(-1) === true
          maxLength = null
          count()
        } else if (byte === colon) {
          isName = false
          count()
        } else if (byte === openBrace || byte === openBracket) open(byte === openBrace)
        else if (byte === closeBrace || byte === closeBracket) {
          isObject.pop()
          isName = false
        }
        index++
      }
    },
    /** Returns the long strings in their order. Throws `malformed_json` when a string is not terminated. */
    end(): readonly LongString[] {
      if (start >= 0) throw malformed('a string in it does not end')
      return strings
    },
  }
}

const space = 0x20
const quote = 0x22
const backslash = 0x5c
const letterU = 0x75
const tilde = 0x7e
const comma = 0x2c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

function nameIn(bytes: Buffer): string {
  const written = bytes.toString('latin1')
  if (!written.includes('\\')) return written
  try {
    return JSON.parse(`"${written}"`)
  } catch {
    // Parsing the whole text reports the error.
    return ''
  }
}

/** Prefix of the placeholder of a long string. It is random, so that no client can send it. */
const placeholder = `\u0001${crypto.randomUUID()}\u0001`
const placeholderBytes = JSON.stringify(placeholder).slice(1, -1)

/** Returns the text with each of the strings replaced by a placeholder. */
function withoutStrings(json: Buffer, strings: readonly LongString[]): Buffer {
  const pieces: Buffer[] = []
  let from = 0
  for (const [index, { start, end }] of strings.entries()) {
    pieces.push(json.subarray(from, start), Buffer.from(`${placeholderBytes}${index}`))
    from = end
  }
  pieces.push(json.subarray(from))
  return Buffer.concat(pieces)
}

/** Replaces the placeholders in `value` with their texts. */
function restore(value: unknown, texts: readonly string[]): unknown {
  if (typeof value === 'string') {
    return value.startsWith(placeholder) ? texts[Number(value.slice(placeholder.length))] : value
  }
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) value[index] = restore(entry, texts)
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, entry] of Object.entries(value)) {
      const restored = restore(entry, texts)
      // An assignment to `__proto__` would change the prototype.
      if (restored !== entry) Object.defineProperty(value, name, { value: restored })
    }
  }
  return value
}

/** Keeps a byte order mark, which is part of the text when it is not at the start of the body. */
const utf8OfPart = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes a long string. Stops when the text is too long, since the schema then only checks its length. */
async function decode(json: Buffer, { start, end, marks, isPlain, maxLength }: LongString): Promise<string> {
  if (maxLength === null) return tooLong
  // One copy; decoding in slices would copy twice.
  if (isPlain) return json.toString('latin1', start, Math.min(end, start + maxLength + 1))
  let text = ''
  let from = start
  for (const mark of [...marks, end]) {
    const to = mark === end ? end : betweenCharacters(json, mark)
    if (to <= from) continue
    try {
      // With `+=`, V8 does not join the pieces until needed: a refused text is never copied into one.
      text += JSON.parse(`"${utf8OfPart.decode(json.subarray(from, to))}"`)
    } catch (error) {
      throw malformed(reasonOf(error))
    }
    if (text.length > maxLength) return text
    from = to
    if (mark !== end) await nextTurn()
  }
  return text
}

/** Returns the first position from `index` on that is not inside a character. UTF-8 has up to 3 continuation bytes. */
function betweenCharacters(json: Buffer, index: number): number {
  let at = index
  while (at < index + 3 && ((json[at] ?? 0) & 0xc0) === 0x80) at++
  return at
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** @param without `position` when the bytes are not those of the body, so that positions would be wrong. */
function parse(bytes: Buffer, without?: 'position'): unknown {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch (error) {
    throw malformed(reasonOf(error))
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw malformed(reasonOf(error, without === 'position' ? null : text))
  }
}

/** @param text The text that cannot be parsed, or null when its positions are not those of the body. */
function reasonOf(error: unknown, text: string | null = null): string {
  if (!(error instanceof SyntaxError)) return 'it is not UTF-8'
  if (text !== null && error.message === unexpectedEnd) return 'it ends too early'
  const position = text === null ? null : positionOf(error, text)
  return position === null ? 'it cannot be parsed' : `it cannot be parsed at character ${position + 1}`
}

const unexpectedEnd = 'Unexpected end of JSON input'
const unexpectedToken = 'Unexpected token'

/**
 * Returns the position where `text` stops being JSON, or null when it is unknown. For some errors V8 reports the
 * position. For others it quotes the text, which may hold a private key and must not be repeated; a binary search for
 * the shortest prefix with the error then finds the position.
 */
function positionOf({ message }: SyntaxError, text: string): number | null {
  const [, told] = / at position (\d+) \(line \d+ column \d+\)$/.exec(message) ?? []
  if (told !== undefined) return Number(told)
  if (!message.startsWith(unexpectedToken) || text.length > smallBytes) return null
  let [without, within] = [0, text.length]
  while (within - without > 1) {
    const middle = (without + within) >> 1
    if (messageOf(text.slice(0, middle)).startsWith(unexpectedToken)) within = middle
    else without = middle
  }
  return without
}

function messageOf(text: string): string {
  try {
    JSON.parse(text)
    return ''
  } catch (error) {
    return error instanceof SyntaxError ? error.message : ''
  }
}

function malformed(reason: string): DomainError {
  return new DomainError('malformed_json', `The body is not JSON: ${reason}.`)
}

function tooMuch(what: string): DomainError {
  return new DomainError('payload_too_large', `The body has more than ${what}: send less at once.`)
}
