import { isUtf8 } from 'node:buffer'
import { encodingByMark, encodingByZeros, type ImportEncoding } from '../../contract/import-files.ts'

/** Decodes a file piece by piece. The encoding is known when the first piece was decoded. */
export type UploadDecoder = {
  /** Returns the text of the next bytes. Throws `NotDecodableError`. */
  write(bytes: Buffer): string
  /** Returns the rest. Call it once, behind the last bytes. Throws `NotDecodableError`. */
  end(): string
  readonly encoding: ImportEncoding
}

/** The bytes are not text of the encoding. */
export class NotDecodableError extends Error {
  override name = 'NotDecodableError'
}

/** Bytes that decide the encoding: of the longest byte order mark, and for zeros in two characters of UTF-16. */
const decidingBytes = 4

/**
 * Creates the decoder of a file. With a byte order mark that decides, also against `given`. Without one and without
 * `given`: zeros show UTF-16; a file whose first character beyond ASCII is none of UTF-8 is windows-1252; any other is
 * UTF-8, and must be so throughout. How the file is cut into pieces makes no difference.
 */
export function createUploadDecoder(given: ImportEncoding | undefined): UploadDecoder {
  let beginning = Buffer.alloc(0)
  let encoding: ImportEncoding | null = null
  let decoder: InstanceType<typeof TextDecoder> | null = null
  let isGuess = false
  let isAsciiSoFar = true
  /** The first bytes of a character of UTF-8 whose rest is in the next piece. */
  let split = Buffer.alloc(0)

  function decide(): void {
    const marked = encodingByMark(beginning)
    isGuess = marked === null && given === undefined
    use(marked ?? given ?? encodingByZeros(beginning) ?? 'utf-8')
  }

  function use(next: ImportEncoding): void {
    encoding = next
    decoder = next === 'utf-8' ? null : new TextDecoder(next)
  }

  function decodeUtf8(bytes: Buffer, isEnd: boolean): string {
    const all = split.length === 0 ? bytes : Buffer.concat([split, bytes])
    const whole = isEnd ? all.length : all.length - unfinishedBytes(all)
    split = Buffer.from(all.subarray(whole))
    const piece = all.subarray(0, whole)
    try {
      // Only the first piece of a file can have a mark; U+FEFF elsewhere is a character.
      const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(piece)
      isAsciiSoFar &&= text.length === piece.length
      return text
    } catch (cause) {
      if (!isGuess || !isAsciiSoFar || beginsInUtf8(piece))
        throw new NotDecodableError('the file is not UTF-8 throughout', { cause })
      use('windows-1252')
      split = Buffer.alloc(0)
      return new TextDecoder('windows-1252').decode(all)
    }
  }

  function decode(bytes: Buffer, isEnd: boolean): string {
    return decoder === null ? decodeUtf8(bytes, isEnd) : decoder.decode(bytes, { stream: !isEnd })
  }

  function begin(): Buffer {
    decide()
    const bytes = beginning
    beginning = Buffer.alloc(0)
    // TextDecoder takes the mark of its own encoding away; that of UTF-8 is left to it too elsewhere.
    return encoding === 'utf-8' && encodingByMark(bytes) === 'utf-8' ? bytes.subarray(3) : bytes
  }

  return {
    write(bytes) {
      if (encoding !== null) return decode(bytes, false)
      beginning = Buffer.concat([beginning, bytes])
      return beginning.length < decidingBytes ? '' : decode(begin(), false)
    },
    end: () => decode(encoding === null ? begin() : Buffer.alloc(0), true),
    get encoding() {
      return encoding ?? given ?? 'utf-8'
    },
  }
}

/** Returns whether the first character beyond ASCII is one of UTF-8. */
function beginsInUtf8(bytes: Buffer): boolean {
  const at = bytes.findIndex((byte) => byte >= 0x80)
  return isUtf8(bytes.subarray(at, at + utf8Length(bytes[at] ?? 0)))
}

/** Returns how many bytes a character of UTF-8 has whose first byte this is. Source: RFC 3629 §3. */
function utf8Length(byte: number): number {
  if (byte >= 0xf0) return 4
  return byte < 0xe0 ? 2 : 3
}

/** Returns how many bytes at the end are the beginning of a character of UTF-8. Source: RFC 3629 §3. */
function unfinishedBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return back < utf8Length(byte) ? back : 0
  }
  return 0
}
