import { type Header, headerOf, splitHeaders } from './headers.ts'

/*
 * A MIME parser for messages that may be broken in any way. It never throws, and reads a bounded part of a message:
 * the content of a notification is at its beginning. docs/decisions/mime-readers.md says why this is not mailparser.
 *
 * Source: RFC 5322 §2, RFC 2045, RFC 2046 §5.1.
 */

/** A node in the MIME tree of a message. */
export type Part = {
  headers: readonly Header[]
  /** Lower case, such as `text/plain`. */
  type: string
  /** The parameters of the Content-Type by name in lower case. */
  parameters: Readonly<Record<string, string>>
  /** The raw body, one character per byte. */
  body: string
  /** The parts of a multipart, or the message inside a message part. */
  parts: readonly Part[]
}

/** Maximum bytes of a message to parse. */
const maxBytes = 1_048_576
const maxDepth = 8
/** Maximum parts of a message, at all depths. */
const maxParts = 100

const messageTypes: readonly string[] = [
  'message/rfc822',
  'message/global',
  'text/rfc822-headers',
  'message/global-headers',
]

/** Parses a message into its MIME tree. */
export function parseMime(message: Buffer): Part {
  return parsePart(message.toString('latin1', 0, maxBytes), { depth: 0, budget: { parts: maxParts } })
}

/** Returns all nodes in breadth-first order. */
export function allParts(root: Part): Part[] {
  const found = [root]
  for (const part of found) found.push(...part.parts)
  return found
}

/** Returns all nodes in document order. */
export function inOrder(root: Part): Part[] {
  return [root, ...root.parts.flatMap(inOrder)]
}

/** Returns the text of a leaf part, decoded from its transfer encoding and charset. */
export function textOf({ headers, parameters, body }: Part): string {
  const bytes = decodeTransfer(body, headerOf(headers, 'content-transfer-encoding') ?? '')
  return decodeCharset(bytes, parameters.charset ?? 'utf-8')
}

type PartPlace = { depth: number; budget: { parts: number } }

function parsePart(text: string, place: PartPlace): Part {
  place.budget.parts -= 1
  const { headers, body } = splitHeaders(text)
  const { type, parameters } = contentTypeOf(headerOf(headers, 'content-type') ?? '')
  const part: Part = { headers, type, parameters, body, parts: [] }
  if (place.depth >= maxDepth) return part
  return { ...part, parts: partsOf(part, { ...place, depth: place.depth + 1 }) }
}

function partsOf(part: Part, place: PartPlace): Part[] {
  if (part.type.startsWith('multipart/')) {
    const parts: Part[] = []
    for (const text of splitAtBoundary(part.body, part.parameters.boundary ?? '')) {
      if (place.budget.parts <= 0) break
      parts.push(parsePart(text, place))
    }
    return parts
  }
  if (!messageTypes.includes(part.type) || place.budget.parts <= 0) return []
  const encoding = headerOf(part.headers, 'content-transfer-encoding') ?? ''
  return [parsePart(decodeTransfer(part.body, encoding).toString('latin1').trimStart(), place)]
}

/** Yields the text between the boundary lines. A missing last boundary is treated as the end of the body. */
function* splitAtBoundary(body: string, boundary: string): Generator<string> {
  if (boundary === '') return
  const delimiter = `--${boundary}`
  let start = -1
  for (let at = body.indexOf(delimiter); at !== -1; at = body.indexOf(delimiter, at + delimiter.length)) {
    if (at > 0 && body[at - 1] !== '\n') continue
    const lineEnd = body.indexOf('\n', at)
    const rest = body.slice(at + delimiter.length, lineEnd === -1 ? undefined : lineEnd).trim()
    // This is another, longer boundary that begins with this one.
    if (rest !== '' && rest !== '--') continue
    if (start !== -1) yield body.slice(start, at)
    if (rest === '--' || lineEnd === -1) return
    start = lineEnd + 1
  }
  if (start !== -1) yield body.slice(start)
}

function contentTypeOf(value: string): { type: string; parameters: Record<string, string> } {
  const type = /^\s*([\w.+-]{1,100}\/[\w.+-]{1,100})/.exec(value)?.[1]?.toLowerCase() ?? 'text/plain'
  const parameters: Record<string, string> = {}
  for (const [, name = '', quoted, plain] of value.matchAll(
    /;\s*([\w-]{1,50})\s*=\s*(?:"([^"]{0,500})"|([^\s;"]{1,500}))/g,
  )) {
    parameters[name.toLowerCase()] ??= quoted ?? plain ?? ''
  }
  return { type, parameters }
}

function decodeTransfer(body: string, encoding: string): Buffer {
  switch (encoding.trim().toLowerCase()) {
    case 'base64':
      return Buffer.from(body, 'base64')
    case 'quoted-printable':
      return Buffer.from(decodeQuotedPrintable(body), 'latin1')
    default:
      return Buffer.from(body, 'latin1')
  }
}

function decodeQuotedPrintable(body: string): string {
  return body
    .replace(/=[ \t]{0,100}\r?\n/g, '')
    .replace(/=([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
}

function decodeCharset(bytes: Buffer, charset: string): string {
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return bytes.toString('latin1')
  }
}
