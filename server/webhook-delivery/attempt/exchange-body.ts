import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/** How much of an answer's body is read, both as received and as unpacked. Bytes. */
const maxBodyBytes = 64 * 1024
/** How much of it is kept. Bytes. */
const keptBodyBytes = 4 * 1024

const decompressors: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

const utf8 = new TextDecoder()

/** Takes the body of one answer as it comes in, keeps its beginning and says when enough was read. */
export class BodyReader {
  readonly #onEnough: () => void
  readonly #decompressor: Transform | undefined
  readonly #kept: Buffer[] = []
  #received = 0
  #unpacked = 0

  /**
   * @param contentEncoding The header; a body in a coding that is not known stays as it is.
   * @param onEnough Called when 64 KiB were received or unpacked.
   */
  constructor(contentEncoding: string | undefined, onEnough: () => void) {
    this.#onEnough = onEnough
    const coding = contentEncoding?.trim().toLowerCase() ?? ''
    if (!Object.hasOwn(decompressors, coding)) return
    this.#decompressor = decompressors[coding]?.()
    this.#decompressor?.on('data', (chunk: Buffer) => this.#keep(chunk))
    this.#decompressor?.on('error', () => {
      // Damaged: what came out of it so far stands.
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

  /** The first 4 KiB as text. Of a damaged compressed body, what could be unpacked. */
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

/** UTF-8 with U+FFFD for what is none and for U+0000, which PostgreSQL cannot store; cut between characters. */
function textOf(body: Buffer): string {
  const cut = body.length > keptBodyBytes
  const text = cut ? new TextDecoder().decode(body.subarray(0, keptBodyBytes), { stream: true }) : utf8.decode(body)
  return text.replaceAll('\0', '\ufffd')
}
