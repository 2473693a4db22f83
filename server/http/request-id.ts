import type { ServerResponse } from 'node:http'
import { newRequestId } from '../shared/ids.ts'

const header = 'X-Request-Id'

/** Sets a new request id in the response header: `req_` and a UUIDv7. An id from the client is ignored. */
export function assignRequestId(res: ServerResponse): void {
  res.setHeader(header, newRequestId())
}

/** Returns the request id of a response. */
export function requestIdOf(res: ServerResponse): string {
  return String(res.getHeader(header))
}
