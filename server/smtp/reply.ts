import { printable } from '../lib/printable.ts'

/** A reply of an SMTP server. Source: RFC 5321 §4.2. */
export type Reply = {
  /** From 200 to 599. */
  code: number
  /** The enhanced status code, such as `5.1.1`; null: none. Source: RFC 2034 §4, RFC 3463 §2. */
  enhanced: string | null
  /** The text of each line, without its codes. */
  lines: readonly string[]
}

/** The bytes from the server are not an SMTP reply. */
export class InvalidReplyError extends Error {
  override name = 'InvalidReplyError'
}

/** Maximum bytes of a reply line. RFC 5321 §4.5.3.1.5 allows 512, but some servers send longer lines. */
const maxLineLength = 4096
/** Maximum lines of a reply: far more than the longest replies to EHLO. */
const maxLines = 100
/** Maximum characters kept of the text of a reply. */
const maxTextLength = 1000

const lineForm = /^([2-5]\d\d)(?:([ -])(.*))?$/s
const enhancedForm = /^([245]\.\d{1,3}\.\d{1,3})(?:[\s:]+|$)/
/** The form of qmail, at the end of the text. */
const hashedForm = /#([245]\.\d{1,3}\.\d{1,3})\b/

const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Parses replies from chunks of any size. */
export class ReplyReader {
  #rest: Buffer = Buffer.alloc(0)
  #lines: string[] = [];

  /**
   * Yields the replies that `chunk` completes. Throws InvalidReplyError after the valid replies before the error; the
   * reader cannot be used after that.
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

/** Returns a line without the carriage returns at its end; some servers write more than one. */
function lineOf(bytes: Buffer): string {
  let end = bytes.length
  while (bytes[end - 1] === carriageReturn) end -= 1
  return bytes.toString('utf8', 0, end)
}

function replyOf(code: number, lines: readonly string[]): Reply {
  const enhanced = enhancedForm.exec(lines[0] ?? '')?.[1] ?? hashedForm.exec(lines.at(-1) ?? '')?.[1] ?? null
  // Each line repeats the enhanced code (RFC 2034 §4).
  return { code, enhanced, lines: enhanced === null ? lines : lines.map((line) => line.replace(enhancedForm, '')) }
}

/** Returns the text of a reply on one line, cut to a length that is safe for regular expressions. */
export function wordsOfReply({ lines }: Reply): string {
  return lines.join(' ').slice(0, maxTextLength).replace(/\s+/g, ' ').trim()
}

/** Returns a reply as one printable line, such as `550 5.1.1 No such user`. Its text is cut to 1,000 characters. */
export function textOfReply(reply: Reply): string {
  const text = printable(wordsOfReply(reply)).slice(0, maxTextLength)
  return [reply.code, reply.enhanced, text].filter((part) => part !== null && part !== '').join(' ')
}
