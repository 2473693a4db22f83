import { PassThrough, pipeline, Readable } from 'node:stream'
import type { RouteInput } from './route-handler.ts'

/**
 * Returns the body of a response that is written as it is read, page by page, no faster than the client takes it. A
 * failure on the way closes the connection, so that the client sees that the file is not whole.
 */
export function streamedCsv({ req, res }: RouteInput, pages: AsyncGenerator<string>, fileName: string): string {
  // Without a charset, as the spec says: CSV is UTF-8 where none is said (RFC 7111).
  res.setHeader('Content-Type', 'text/csv')
  res.setHeader('Content-Disposition', `attachment; filename="${fileName}"`)
  const body = new PassThrough()
  if (req.method === 'HEAD') {
    void pages.return(undefined)
    body.end()
  } else {
    // The access log shows a connection that is closed before its end.
    pipeline(Readable.from(pages), body, (error) => {
      if (error) res.destroy()
    })
    res.once('close', () => body.destroy())
    if (res.closed) body.destroy()
  }
  // A stream is piped into the answer, and is the string of the contract there.
  return body as unknown as string
}
