import type { ServerResponse } from 'node:http'
import { typeidUnboxed } from 'typeid-js'

const header = 'X-Request-Id'

/** Names a request, for its answer and the logs: `req_` and a UUIDv7. Never the client's own. */
export function assignRequestId(res: ServerResponse): void {
  res.setHeader(header, newRequestId())
}

/** The name given to the request of `res`. */
export function requestIdOf(res: ServerResponse): string {
  return String(res.getHeader(header))
}

export function newRequestId(): string {
  return typeidUnboxed('req')
}
