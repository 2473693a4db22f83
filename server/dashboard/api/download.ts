import { type ApiError, errorOf, headersOf, type Scope } from './client.ts'

/**
 * Has the browser save what the API returns as a file. It is read in whole before: a link could not send the headers of
 * the dashboard.
 *
 * Throws an ApiError when the API refuses it.
 *
 * @param path Such as `/v1/imports/imp_…/failed-rows`.
 */
export async function downloadFile(scope: Scope, path: string, fileName: string): Promise<void> {
  const response = await fetch(path, { headers: headersOf(scope) })
  if (!response.ok) throw (await errorOf(response)) satisfies ApiError
  saveFile(fileName, await response.blob())
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
