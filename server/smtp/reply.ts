import { printable } from '../lib/printable.ts'

/** An answer of an SMTP server. Source: RFC 5321 §4.2. */
export type Reply = {
  /** From 200 to 599. */
  code: number
  /** As `5.1.1`; null where the server gives none. Source: RFC 2034 §4, RFC 3463 §2. */
  enhanced: string | null
  /** The text of each line, without the codes in front of it. */
  lines: readonly string[]
}

/** What came is no reply. */
export class InvalidReplyError extends Error {
  override name = 'InvalidReplyError'
}

/** Bytes. RFC 5321 §4.5.3.1.5 allows 512; servers that tell stories use more. */
const maxLineLength = 4096
/** Far above the extensions that the longest EHLO answers list. */
const maxLines = 100
/** Characters kept of a reply, beside its codes. */
const maxTextLength = 1000

const lineForm = /^([2-5]\d\d)(?:([ -])(.*))?$/s
const enhancedForm = /^([245]\.\d{1,3}\.\d{1,3})(?:[\s:]+|$)/
/** As qmail writes it, at the end of the text. */
const hashedForm = /#([245]\.\d{1,3}\.\d{1,3})\b/

const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Puts replies together from what arrives, in pieces of any size. */
export class ReplyReader {
  #rest: Buffer = Buffer.alloc(0)
  #lines: string[] = [];

  /**
   * The replies that `chunk` completes, one by one. Throws InvalidReplyError behind those before it; nothing
   * can be read after it.
   */
  *push(chunk: Buffer): Generator<Reply, void> {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let start = 0
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, start)) {
      const reply = this.#take(lineOf(bytes.subarray(start, end)))
      if (reply !== null) yield reply
      start = end + 1
    }
    this.#rest = bytes.subarray(start)
    if (this.#rest.length > maxLineLength) throw new InvalidReplyError('a line without an end')
  }

  #take(line: string): Reply | null {
    const [, code, separator, text = ''] = lineForm.exec(line) ?? []
    if (code === undefined) throw new InvalidReplyError('a line without a code')
    if (line.length > maxLineLength) throw new InvalidReplyError('a line that is too long')
    this.#lines.push(text)
    if (this.#lines.length > maxLines) throw new InvalidReplyError('too many lines')
    if (separator === '-') return null
    const lines = this.#lines
    this.#lines = []
    return replyOf(Number(code), lines)
  }
}

/** A line without the end that it has before the line feed; some servers write more than one. */
function lineOf(bytes: Buffer): string {
  let end = bytes.length
  while (bytes[end - 1] === carriageReturn) end -= 1
  return bytes.toString('utf8', 0, end)
}

function replyOf(code: number, lines: readonly string[]): Reply {
  const enhanced = enhancedForm.exec(lines[0] ?? '')?.[1] ?? hashedForm.exec(lines.at(-1) ?? '')?.[1] ?? null
  // Each line repeats it (RFC 2034 §4).
  return { code, enhanced, lines: enhanced === null ? lines : lines.map((line) => line.replace(enhancedForm, '')) }
}

/** The text of a reply on one line: its beginning, so that nothing that reads it has to read for long. */
export function wordsOfReply({ lines }: Reply): string {
  return lines.join(' ').slice(0, maxTextLength).replace(/\s+/g, ' ').trim()
}

/** A reply for people: one printable line of at most 1 KiB of characters, such as `550 5.1.1 No such user`. */
export function textOfReply(reply: Reply): string {
  const text = printable(wordsOfReply(reply)).slice(0, maxTextLength)
  return [reply.code, reply.enhanced, text].filter((part) => part !== null && part !== '').join(' ')
}
