import { errorOf, headersOf, type Scope, send, unreachable } from './client.ts'

/**
 * Has the browser save what the API returns as a file. It is read in whole before: a link could not send the headers of
 * the dashboard.
 *
 * Throws an ApiError when the API refuses it, cannot be reached, or breaks off.
 *
 * @param path Such as `/v1/imports/imp_…/failed-rows`.
 */
export async function downloadFile(scope: Scope, path: string, fileName: string): Promise<void> {
  const response = await send(path, { headers: headersOf(scope) })
  if (!response.ok) throw await errorOf(response)
  saveFile(fileName, await contentOf(response))
}

async function contentOf(response: Response): Promise<Blob> {
  try {
    return await response.blob()
  } catch (cause) {
    throw unreachable('The file was not read to its end. Try again.', cause)
  }
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
