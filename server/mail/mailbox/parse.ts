import { type ParsedMail, simpleParser } from 'mailparser'
import type { CapturedMessageWithContent } from '../../../contract/captured-messages.ts'

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
  return headingOf(await parse(onlyHeaders(head)))
}

/** What is in a message. Empty where it cannot be read: its source is there all the same. */
export async function readContent(message: Buffer): Promise<ReadMessage> {
  const mail = await parse(message)
  return {
    ...headingOf(mail),
    headers: mail?.headerLines.map(({ line }) => headerOf(line)) ?? [],
    text: mail?.text ?? null,
    html: mail === null || mail.html === false ? null : (mail.html ?? null),
    attachments:
      mail?.attachments.map(({ filename, contentType, cid, size }) => ({
        filename: filename ?? null,
        contentType,
        contentId: cid ?? null,
        size,
      })) ?? [],
  }
}

async function parse(message: Buffer): Promise<ParsedMail | null> {
  const parsing: Promise<ParsedMail> = simpleParser(message, options)
  return parsing.catch(() => null)
}

function headingOf(mail: ParsedMail | null): Heading {
  return { from: mail?.from?.text ?? null, subject: mail?.subject ?? null }
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
