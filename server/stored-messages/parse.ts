import { Readable } from 'node:stream'
import type { AddressObject, AttachmentStream, HeaderLines, Headers, MailParser, MessageText } from 'mailparser'
import type { CapturedMessageWithContent } from '../../contract/captured-messages.ts'

type Content = Omit<Pick<CapturedMessageWithContent, 'headers' | 'text' | 'html' | 'attachments'>, 'source'>
export type Heading = Pick<CapturedMessageWithContent, 'from' | 'subject'>
export type ReadMessage = Content & Heading
export type ReadAttachment = ReadMessage['attachments'][number] & { content: Buffer }

/** Options that turn all conversions off: a message is shown as it was written. */
const options = {
  skipHtmlToText: true,
  skipTextToHtml: true,
  skipTextLinks: true,
  skipImageLinks: true,
  keepCidLinks: true,
}

/** Bytes of a message to read for its sender and subject. */
export const headBytes = 32_768

/** Reads the sender and subject from the first `headBytes` of a message. A field that cannot be read is null. */
export async function readHeading(head: Buffer): Promise<Heading> {
  const { from, subject } = await readContent(onlyHeaders(head))
  return { from, subject }
}

/**
 * Parses a message. Returns an empty content if it cannot be parsed; its source is still available. The content of
 * attachments is not kept in memory.
 */
export async function readContent(message: Buffer): Promise<ReadMessage> {
  const parser = await createParser()
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
    for await (const part of partsOf(message, parser)) await take(part, read)
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

/**
 * Reads the attachment at an index of `attachments` of `readContent`, with what is in it. Returns null when there is
 * none, or the message cannot be parsed.
 */
export async function readAttachment(message: Buffer, index: number): Promise<ReadAttachment | null> {
  let found: ReadAttachment | null = null
  let position = 0
  try {
    for await (const part of partsOf(message, await createParser())) {
      if (part.type === 'text') continue
      const chunks: Buffer[] = []
      // Read to its end in any case: only then the next part comes.
      for await (const chunk of part.content as Readable) if (position === index) chunks.push(chunk)
      if (position === index) found = { ...describe(part), content: Buffer.concat(chunks) }
      position += 1
      part.release()
    }
  } catch {
    return null
  }
  return found
}

/** Loads the package when it is first needed: it takes as long as all that Express consists of. */
async function createParser(): Promise<MailParser> {
  const { MailParser } = await import('mailparser')
  return new MailParser(options)
}

function partsOf(message: Buffer, parser: MailParser): AsyncIterable<AttachmentStream | MessageText> {
  return Readable.from(slicesOf(message)).pipe(parser)
}

/** The result for a message that cannot be parsed. */
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
  // The size is known only after reading all of it.
  for await (const _ of part.content as Readable);
  read.attachments.push(describe(part))
  part.release()
}

function describe({ filename, contentType, cid, size }: AttachmentStream): ReadMessage['attachments'][number] {
  return { filename: filename ?? null, contentType, contentId: cid ?? null, size }
}

/** Bytes per write to the parser. It would copy a message that is written at once. */
const sliceBytes = 65_536

function* slicesOf(message: Buffer): Generator<Buffer> {
  for (let from = 0; from < message.length; from += sliceBytes) yield message.subarray(from, from + sliceBytes)
}

function headerOf(line: string): { name: string; value: string } {
  const colon = line.indexOf(':')
  const unfolded = (text: string) => text.replaceAll(/\r?\n(?=[ \t])/g, '').trim()
  return { name: line.slice(0, Math.max(0, colon)).trim(), value: unfolded(line.slice(colon + 1)) }
}

/** Returns the header without the body, so that the body is not parsed. */
function onlyHeaders(head: Buffer): Buffer {
  const end = /\r?\n\r?\n/.exec(head.toString('latin1'))
  return end === null ? head : head.subarray(0, end.index + end[0].length)
}
