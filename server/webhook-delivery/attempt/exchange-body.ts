import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/** Maximum size of a response body that is read, both as received and as decompressed. Bytes. */
const maxBodyBytes = 64 * 1024
/** Maximum size of the part that is kept. Bytes. */
const keptBodyBytes = 4 * 1024

const decompressors: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

const utf8 = new TextDecoder()

/** Reads the body of one response chunk by chunk, keeps its beginning and reports when enough was read. */
export class BodyReader {
  readonly #onEnough: () => void
  readonly #decompressor: Transform | undefined
  readonly #kept: Buffer[] = []
  #received = 0
  #unpacked = 0

  /**
   * @param contentEncoding The `Content-Encoding` header. A body with an unknown coding is kept as it is.
   * @param onEnough Called when 64 KiB were received or decompressed.
   */
  constructor(contentEncoding: string | undefined, onEnough: () => void) {
    this.#onEnough = onEnough
    const coding = contentEncoding?.trim().toLowerCase() ?? ''
    if (!Object.hasOwn(decompressors, coding)) return
    this.#decompressor = decompressors[coding]?.()
    this.#decompressor?.on('data', (chunk: Buffer) => this.#keep(chunk))
    this.#decompressor?.on('error', () => {
      // The body is damaged. The part that was decompressed so far is kept.
    })
  }

  add(chunk: Buffer): void {
    if (this.#decompressor === undefined) {
      this.#keep(chunk)
      return
    }
    this.#decompressor.write(chunk)
    this.#received += chunk.length
    if (this.#received >= maxBodyBytes) this.#onEnough()
  }

  /** Returns the first 4 KiB as text; of a damaged compressed body, the part that could be decompressed. */
  async text(): Promise<string> {
    if (this.#decompressor !== undefined) await this.#drained(this.#decompressor)
    return textOf(Buffer.concat(this.#kept))
  }

  #keep(chunk: Buffer): void {
    if (this.#unpacked <= keptBodyBytes) this.#kept.push(chunk)
    this.#unpacked += chunk.length
    if (this.#unpacked < maxBodyBytes) return
    this.#decompressor?.destroy()
    this.#onEnough()
  }

  #drained(decompressor: Transform): Promise<void> {
    if (decompressor.destroyed) return Promise.resolve()
    return new Promise((resolve) => {
      decompressor.on('close', resolve)
      decompressor.end()
    })
  }
}

/**
 * Decodes UTF-8. Invalid bytes become U+FFFD, and so does U+0000, which PostgreSQL cannot store. Cuts between
 * characters.
 */
function textOf(body: Buffer): string {
  const cut = body.length > keptBodyBytes
  const text = cut ? new TextDecoder().decode(body.subarray(0, keptBodyBytes), { stream: true }) : utf8.decode(body)
  return text.replaceAll('\0', '\ufffd')
}
