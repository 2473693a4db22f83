import { errorOf, headersOf, type Scope, send, unreachable } from './client.ts'

type Download = {
  scope: Scope
  /** Such as `/v1/imports/imp_…/failed-rows`. */
  path: string
  fileName: string
  /** Ends it: nothing is saved then. */
  signal: AbortSignal
  /** Told of the bytes so far. The API does not tell how many there will be. */
  onProgress: (bytes: number) => void
}

/** Milliseconds between two calls of `onProgress`. */
const tellMs = 200

/**
 * Has the browser save what the API returns as a file. It is read in whole before: a link could not send the headers of
 * the dashboard.
 *
 * Throws an ApiError when the API refuses it, cannot be reached, or breaks off, and when it is ended.
 */
export async function downloadFile({ scope, path, fileName, signal, onProgress }: Download): Promise<void> {
  const response = await send(path, { headers: headersOf(scope), signal })
  if (!response.ok) throw await errorOf(response)
  saveFile(fileName, await contentOf(response, onProgress))
}

async function contentOf({ body }: Response, onProgress: (bytes: number) => void): Promise<Blob> {
  let content = new Blob()
  let chunks: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  let toldAt = Number.NEGATIVE_INFINITY
  try {
    for (const reader = body?.getReader(); reader !== undefined; ) {
      const { value, done } = await reader.read()
      if (done) break
      chunks.push(value)
      bytes += value.byteLength
      if (performance.now() - toldAt < tellMs) continue
      toldAt = performance.now()
      onProgress(bytes)
      // The browser may keep a Blob on the disk.
      content = new Blob([content, ...chunks])
      chunks = []
    }
  } catch (cause) {
    throw unreachable('The file was not read to its end. Try again.', cause)
  }
  return new Blob([content, ...chunks])
}

/** Has the browser save bytes as a file, of a type that it does not show. */
export function saveFile(fileName: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = url
  link.download = fileName
  link.click()
  URL.revokeObjectURL(url)
}
