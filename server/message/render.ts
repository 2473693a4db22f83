import type MimeNode from 'nodemailer/lib/mime-node'
import { base64Lines, quotedPrintable } from './encodings.ts'
import type { FieldLines } from './headers.ts'

const lineEnd = Buffer.from('\r\n')

/**
 * Returns the bytes of a message. The MIME tree builds the header fields of its parts. The bodies are written here,
 * because the streams of the library take longer for a small message than everything else.
 *
 * @param fields The header fields above those of the tree.
 * @param root The MIME tree. Its contents are strings with CRLF line ends, or buffers.
 */
export function renderMessage(fields: readonly FieldLines[], root: MimeNode): Buffer {
  const chunks: Buffer[] = fields.map((lines) => Buffer.from(`${lines}\r\n`))
  writeNode(root, chunks)
  if (chunks.at(-1)?.subarray(-2).equals(lineEnd) === false) chunks.push(lineEnd)
  return Buffer.concat(chunks)
}

function writeNode(node: MimeNode, chunks: Buffer[]): void {
  // Must come first: building the headers sets the boundary.
  chunks.push(Buffer.from(`${node.buildHeaders()}\r\n\r\n`))
  if (typeof node.boundary !== 'string') {
    chunks.push(bodyOf(node))
    return
  }
  for (const [index, child] of node.childNodes.entries()) {
    chunks.push(Buffer.from(`${index === 0 ? '' : '\r\n'}--${node.boundary}\r\n`))
    writeNode(child, chunks)
  }
  chunks.push(Buffer.from(`\r\n--${node.boundary}--\r\n`))
}

function bodyOf(node: MimeNode): Buffer {
  const content = contentOf(node)
  const encoding = node.getTransferEncoding()
  if (encoding === 'base64') return base64Lines(content)
  if (encoding === 'quoted-printable') return quotedPrintable(content)
  return content
}

function contentOf({ content }: MimeNode): Buffer {
  if (Buffer.isBuffer(content)) return content
  if (typeof content === 'string') return Buffer.from(content)
  if (content === undefined) return Buffer.alloc(0)
  throw new TypeError('a part of a message is neither text nor bytes')
}
