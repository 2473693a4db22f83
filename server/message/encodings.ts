const lineLength = 76
/** Three bytes become four characters. */
const bytesInLine = (lineLength / 4) * 3

const cr = 0x0d
const lf = 0x0a
const tab = 0x09
const space = 0x20
const equals = 0x3d
const hexDigits = Buffer.from('0123456789ABCDEF')

/** Encodes bytes as base64 in lines of 76 characters, the last without a line end. Source: RFC 2045 §6.8. */
export function base64Lines(content: Buffer): Buffer {
  const digits = Buffer.from(content.toString('base64'), 'latin1')
  const breaks = Math.max(0, Math.ceil(content.length / bytesInLine) - 1)
  const lines = Buffer.allocUnsafe(digits.length + 2 * breaks)
  let length = 0
  for (let start = 0; start < digits.length; start += lineLength) {
    if (start > 0) {
      lines[length++] = cr
      lines[length++] = lf
    }
    length += digits.copy(lines, length, start, start + lineLength)
  }
  return lines
}

/**
 * Encodes bytes as quoted-printable in lines of at most 76 characters. CRLF stays a line end; decoding restores every
 * other byte. Source: RFC 2045 §6.7.
 */
export function quotedPrintable(content: Buffer): Buffer {
  // At most three characters per byte, plus a soft line break of three characters per line.
  const encoded = Buffer.allocUnsafe(Math.ceil(content.length * 3 * (1 + 3 / 72)) + 3)
  let length = 0
  let column = 0
  for (let index = 0; index < content.length; index++) {
    const byte = content[index] as number
    if (endsLine(content, index)) {
      encoded[length++] = cr
      encoded[length++] = lf
      column = 0
      index++
      continue
    }
    const plain = isPlain(byte) || ((byte === space || byte === tab) && !isLast(content, index))
    const width = plain ? 1 : 3
    // Only the last character of a line may use the column that a soft line break needs.
    if (column + width > lineLength - (isLast(content, index) ? 0 : 1)) {
      encoded[length++] = equals
      encoded[length++] = cr
      encoded[length++] = lf
      column = 0
    }
    if (plain) {
      encoded[length++] = byte
    } else {
      encoded[length++] = equals
      encoded[length++] = hexDigits[byte >> 4] as number
      encoded[length++] = hexDigits[byte & 0x0f] as number
    }
    column += width
  }
  return encoded.subarray(0, length)
}

function isPlain(byte: number): boolean {
  return byte > space && byte < 0x7f && byte !== equals
}

function endsLine(content: Buffer, index: number): boolean {
  return content[index] === cr && content[index + 1] === lf
}

/** Returns whether the byte is the last one of a line or of the content. */
function isLast(content: Buffer, index: number): boolean {
  return index + 1 === content.length || endsLine(content, index + 1)
}
