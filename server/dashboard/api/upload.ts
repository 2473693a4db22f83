import { ApiError, errorOf, headersOf, type Result, type Scope } from './client.ts'

type Upload = {
  scope: Scope
  /** Parameters of the query. */
  query: Readonly<Record<string, string>>
  file: Blob
  signal: AbortSignal
  /** Told of the share of the file that was sent: 1 is all of it. */
  onProgress: (share: number) => void
}

/**
 * Sends a file to be imported. The service tells from its bytes what it is. Not with `fetch`, which does not tell how much of a body was sent.
 *
 * Throws an ApiError when the API refuses the file or cannot be reached.
 */
export async function uploadImport({
  scope,
  query,
  file,
  signal,
  onProgress,
}: Upload): Promise<Result<'POST /v1/imports'>> {
  const response = await new Promise<Response>((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', `/v1/imports?${new URLSearchParams(query)}`)
    for (const [name, value] of Object.entries(headersOf(scope))) request.setRequestHeader(name, value)
    request.setRequestHeader('Content-Type', 'text/csv')
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 1 : loaded / total)
    request.onload = () => resolve(new Response(request.responseText, { status: request.status }))
    request.onerror = () => {
      const message =
        'The file could not be sent: the connection broke, or the file has changed since it was chosen. Choose it again.'
      reject(new ApiError({ status: 0, code: 'unreachable', message }))
    }
    request.onabort = () => reject(signal.reason)
    signal.addEventListener('abort', () => request.abort(), { once: true })
    request.send(file)
  })
  if (!response.ok) throw await errorOf(response)
  return response.json()
}
