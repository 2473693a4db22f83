const cr = 0x0d
const lf = 0x0a
const tab = 0x09
const space = 0x20

/** A raw header field of a message, with its bytes as latin1 characters. */
export type HeaderField = { name: string; value: string }

/** The header fields of a message in their order, and its body. */
export type SplitMessage = { fields: HeaderField[]; body: Buffer }

/**
 * Splits a message at the first empty line. Without an empty line, everything is header.
 *
 * @param message With CRLF line ends.
 */
export function splitMessage(message: Buffer): SplitMessage {
  const end = message.indexOf('\r\n\r\n')
  const head = message.toString('latin1', 0, end === -1 ? message.length : end)
  return {
    fields: head.split(/\r\n(?![ \t])/).flatMap((line) => fieldOf(line)),
    body: end === -1 ? Buffer.alloc(0) : message.subarray(end + 4),
  }
}

function fieldOf(line: string): HeaderField[] {
  const colon = line.indexOf(':')
  return colon === -1 ? [] : [{ name: line.slice(0, colon), value: line.slice(colon + 1) }]
}

/**
 * Returns a header field in relaxed canonical form, without a line end: the name in lower case, the value on one line,
 * white space reduced to one space, and none at the ends or around the colon.
 *
 * Source: RFC 6376 §3.4.2.
 */
export function relaxedHeader({ name, value }: HeaderField): string {
  return `${relaxedName(name)}:${withoutOuterSpace(value.replace(/[ \t\r\n]+/g, ' '))}`
}

export function relaxedName(name: string): string {
  return name.replace(/[ \t]/g, '').toLowerCase()
}

/** Removes a space at either end. Not `trim`: it also removes U+00A0, which is a byte of many UTF-8 characters. */
function withoutOuterSpace(text: string): string {
  return text.slice(text.startsWith(' ') ? 1 : 0, text.length > 1 && text.endsWith(' ') ? -1 : undefined)
}

/**
 * Returns a body in relaxed canonical form: one space for each run of spaces and tabs, none at the end of a line, no
 * empty lines at the end, and a line end after the last line. A body without content is empty.
 *
 * Reads every byte once, so the time is linear for any input.
 *
 * Source: RFC 6376 §3.4.4.
 *
 * @param body With CRLF line ends.
 */
export function relaxedBody(body: Buffer): Buffer {
  const relaxed = Buffer.allocUnsafe(body.length + 2)
  let length = 0
  // End of the last line with content.
  let contentEnd = 0
  let spacePending = false
  for (let index = 0; index < body.length; index++) {
    const byte = body[index] as number
    if (byte === space || byte === tab) {
      spacePending = true
    } else if (byte === cr && body[index + 1] === lf) {
      relaxed[length++] = cr
      relaxed[length++] = lf
      spacePending = false
      index++
    } else {
      if (spacePending) relaxed[length++] = space
      relaxed[length++] = byte
      contentEnd = length
      spacePending = false
    }
  }
  if (contentEnd === 0) return relaxed.subarray(0, 0)
  relaxed[contentEnd] = cr
  relaxed[contentEnd + 1] = lf
  return relaxed.subarray(0, contentEnd + 2)
}
