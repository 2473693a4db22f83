import { Readable } from 'node:stream'
import {
  type AddressObject,
  type AttachmentStream,
  type HeaderLines,
  type Headers,
  MailParser,
  type MessageText,
} from 'mailparser'
import type { CapturedMessageWithContent } from '../../contract/captured-messages.ts'

type Content = Omit<Pick<CapturedMessageWithContent, 'headers' | 'text' | 'html' | 'attachments'>, 'source'>
type Heading = Pick<CapturedMessageWithContent, 'from' | 'subject'>
export type ReadMessage = Content & Heading

/** Shown as it was written: nothing is made of anything else. */
const options = {
  skipHtmlToText: true,
  skipTextToHtml: true,
  skipTextLinks: true,
  skipImageLinks: true,
  keepCidLinks: true,
}

/** How many bytes of a message are read for its heading. */
export const headBytes = 32_768

/** Who a message is from and what about, by its first `headBytes`. Null where that cannot be read. */
export async function readHeading(head: Buffer): Promise<Heading> {
  const { from, subject } = await readContent(onlyHeaders(head))
  return { from, subject }
}

/**
 * What is in a message. Empty where it cannot be read: its source is there all the same. The content of files is not
 * kept in memory.
 */
export async function readContent(message: Buffer): Promise<ReadMessage> {
  const parser = new MailParser(options)
  let headers: Headers = new Map()
  let lines: HeaderLines = []
  parser.on('headers', (given: Headers) => {
    headers = given
  })
  parser.on('headerLines', (given: HeaderLines) => {
    lines = given
  })
  const read: ReadMessage = { ...unparsableMessage, headers: [], attachments: [] }
  try {
    for await (const part of Readable.from(slicesOf(message)).pipe(parser)) await take(part, read)
  } catch {
    return unparsableMessage
  }
  const from: AddressObject | undefined = Object(headers.get('from'))
  const subject = headers.get('subject')
  return {
    ...read,
    from: from?.text ?? null,
    subject: typeof subject === 'string' ? subject : null,
    headers: lines.map(({ line }) => headerOf(line)),
  }
}

/** A message of which nothing can be told. */
export const unparsableMessage: ReadMessage = {
  from: null,
  subject: null,
  headers: [],
  text: null,
  html: null,
  attachments: [],
}

async function take(part: AttachmentStream | MessageText, read: ReadMessage): Promise<void> {
  if (part.type === 'text') {
    read.text = part.text ?? read.text
    read.html = typeof part.html === 'string' ? part.html : read.html
    return
  }
  // Its size is known when it was read.
  for await (const _ of part.content as Readable);
  const { filename = null, contentType, cid: contentId = null, size } = part
  read.attachments.push({ filename, contentType, contentId, size })
  part.release()
}

/** Given at once, all of it would be copied. Bytes. */
const sliceBytes = 65_536

function* slicesOf(message: Buffer): Generator<Buffer> {
  for (let from = 0; from < message.length; from += sliceBytes) yield message.subarray(from, from + sliceBytes)
}

function headerOf(line: string): { name: string; value: string } {
  const colon = line.indexOf(':')
  const unfolded = (text: string) => text.replaceAll(/\r?\n(?=[ \t])/g, '').trim()
  return { name: line.slice(0, Math.max(0, colon)).trim(), value: unfolded(line.slice(colon + 1)) }
}

/** Without the body, so that nothing of it is looked at. */
function onlyHeaders(head: Buffer): Buffer {
  const end = /\r?\n\r?\n/.exec(head.toString('latin1'))
  return end === null ? head : head.subarray(0, end.index + end[0].length)
}
