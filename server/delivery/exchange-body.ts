import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/** How much of an answer's body is read, and how much of a compressed one is unpacked. Bytes. */
export const maxBodyBytes = 64 * 1024
/** How much of it is kept. Bytes. */
export const keptBodyBytes = 4 * 1024

const decompressors = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/**
 * The first 4 KiB of a body as text. Compressed bodies are unpacked as far as needed and no further
 * than 64 KiB; of a damaged one, what can be unpacked is shown. Never throws.
 *
 * @param received The first bytes of the body as received, at most 64 KiB of them.
 */
export async function bodyText(received: Buffer, contentEncoding: string | undefined): Promise<string> {
  const encoding = contentEncoding?.trim().toLowerCase() ?? ''
  const body = Object.hasOwn(decompressors, encoding)
    ? await unpack(received, encoding as keyof typeof decompressors)
    : received
  return textOf(body)
}

function unpack(received: Buffer, encoding: keyof typeof decompressors): Promise<Buffer> {
  return new Promise((resolve) => {
    const stream = decompressors[encoding]()
    const chunks: Buffer[] = []
    let length = 0
    const finish = () => {
      stream.destroy()
      resolve(Buffer.concat(chunks))
    }
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      length += chunk.length
      if (length >= Math.min(maxBodyBytes, keptBodyBytes)) finish()
    })
    stream.on('end', finish)
    stream.on('error', finish)
    stream.end(received)
  })
}

/** UTF-8 with U+FFFD for what is none and for U+0000, which PostgreSQL cannot store; cut between characters. */
function textOf(body: Buffer): string {
  const cut = body.length > keptBodyBytes
  const text = new TextDecoder().decode(body.subarray(0, keptBodyBytes), { stream: cut })
  return text.replaceAll('\0', '\ufffd')
}
