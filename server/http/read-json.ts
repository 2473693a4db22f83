import { setImmediate as nextTurn } from 'node:timers/promises'
import { DomainError, invalidField } from '../shared/errors.ts'

/*
 * JSON from outside is parsed in steps, since `JSON.parse` and decoding UTF-8 stop the process for as long as
 * they run: a quarter of a second on 60 MB. First all bytes are walked, a slice in each turn of the event loop,
 * to find the long strings. Then what is left without them is parsed at once, which is little. Then each long
 * string is decoded, slice by slice too, and put where it was.
 */

/** What JSON text may be made of. */
export type JsonBounds = {
  /** Fields whose strings may be long, wherever they stand, with what they may be. Characters of UTF-16. */
  longFields: Readonly<Record<string, number>>
  /** Bytes, as written, of a string in any other field. A longer one is read as `tooLong`. */
  maxStringBytes: number
  /** Bytes of all that is not a string of a long field or too long. */
  maxOtherBytes: number
  /** Names and values. */
  maxValues: number
  /** Objects and lists within each other. */
  maxDepth: number
}

/** Characters of what stands for a string that is too long: more than a field without long strings may have. */
export const tooLongLength = 65_536
const tooLong = 'x'.repeat(tooLongLength)
/** Bytes of a name in an object. */
const maxNameBytes = 8_192
/** Below this, parsing at once takes less than looking first. Bytes. */
const smallBytes = 16_384
/** What is walked or decoded in one turn: a few milliseconds. Bytes. */
const defaultSliceBytes = 1_048_576
/** Strings of long fields that are shorter stay where they are. Bytes. */
const minLongBytes = 1_024

/** What lies between the quotation marks of a long string. */
type LongString = {
  start: number
  end: number
  /** Where it may be cut: between characters and escapes, but for the bytes of one character. */
  marks: readonly number[]
  /** Whether it is printable ASCII without escapes, so that its bytes are its characters. */
  isPlain: boolean
  /** Characters of UTF-16 its field may have. Decoding stops beyond them. Null: it is too long as it is. */
  maxLength: number | null
}

/**
 * What the JSON text says: as `JSON.parse`, but for strings that are too long. Lets the event loop turn
 * meanwhile, so that nobody waits for a large one.
 *
 * Throws a DomainError: `malformed_json` for what is no JSON in UTF-8, `payload_too_large` beyond `bounds`, and
 * `validation_error` for what is nested too deep.
 *
 * @param sliceBytes What is looked at in one turn. Default: 1 MiB.
 */
export async function readJson(json: Buffer, bounds: JsonBounds, sliceBytes = defaultSliceBytes): Promise<unknown> {
  // Since it is small, it is within all bounds but that of a string; no field's is shorter than this.
  if (json.length <= Math.min(smallBytes, sliceBytes)) return parse(json)
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

/** Walks the bytes as far as it is told, and remembers where it is. */
function createWalk(json: Buffer, { longFields, maxStringBytes, maxValues, maxDepth }: JsonBounds) {
  const strings: LongString[] = []
  const longNames = new Map(Object.entries(longFields))
  /** By depth, whether it is in an object. */
  const isObject: boolean[] = [false]
  let index = 0
  let values = 0
  /** Of the string the walk is in; -1: in none. */
  let start = -1
  let marks: number[] = []
  let isPlain = true
  /** Whether the next string is a name in an object. */
  let isName = false
  /** What the next value may be as that of a long field; null: it is of another. */
  let maxLength: number | null = null

  function open(opensObject: boolean): void {
    isObject.push(opensObject)
    if (isObject.length - 1 > maxDepth) throw invalidField('body', `must not be nested more than ${maxDepth} deep`)
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
            // Past the whole escape, so that a mark is never in one.
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
    /** The long strings, in their order. */
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
    // Parsing the whole tells what is wrong.
    return ''
  }
}

/** Begins what stands for a long string in the rest: nobody can guess it, so nobody can send it. */
const placeholder = `\u0001${crypto.randomUUID()}\u0001`
const placeholderBytes = JSON.stringify(placeholder).slice(1, -1)

/** The text with a placeholder instead of each of the strings. */
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

/** Puts the texts where their placeholders are. */
function restore(value: unknown, texts: readonly string[]): unknown {
  if (typeof value === 'string') {
    return value.startsWith(placeholder) ? texts[Number(value.slice(placeholder.length))] : value
  }
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) value[index] = restore(entry, texts)
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, entry] of Object.entries(value)) {
      const restored = restore(entry, texts)
      // Not by assignment, which `__proto__` would take for something else.
      if (restored !== entry) Object.defineProperty(value, name, { value: restored })
    }
  }
  return value
}

/** A byte order mark within a text belongs to it. */
const utf8OfPart = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Stops where the text is longer than it may be: then its length is all that will be looked at. */
async function decode(json: Buffer, { start, end, marks, isPlain, maxLength }: LongString): Promise<string> {
  if (maxLength === null) return tooLong
  // Copied once, where pieces would be copied again to be in one.
  if (isPlain) return json.toString('latin1', start, Math.min(end, start + maxLength + 1))
  let text = ''
  let from = start
  for (const mark of [...marks, end]) {
    const to = mark === end ? end : betweenCharacters(json, mark)
    if (to <= from) continue
    try {
      // Not joined: a text that is refused for its length never has to be in one piece.
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

/** UTF-8 has at most three bytes after the first of a character. */
function betweenCharacters(json: Buffer, index: number): number {
  let at = index
  while (at < index + 3 && ((json[at] ?? 0) & 0xc0) === 0x80) at++
  return at
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** @param without What the reason must not tell, since the bytes are not those that were sent. */
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

/** @param text What cannot be parsed, if its positions are those of the body. */
function reasonOf(error: unknown, text: string | null = null): string {
  if (!(error instanceof SyntaxError)) return 'it is not UTF-8'
  if (text !== null && error.message === unexpectedEnd) return 'it ends too early'
  const position = text === null ? null : positionOf(error, text)
  return position === null ? 'it cannot be parsed' : `it cannot be parsed at character ${position + 1}`
}

const unexpectedEnd = 'Unexpected end of JSON input'
const unexpectedToken = 'Unexpected token'

/**
 * Where `text` stops being JSON; null: it is not known. V8 tells the position of some errors. For others it quotes
 * the text instead, which may hold a private key: then the shortest beginning with the error is looked for.
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
