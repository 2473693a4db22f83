import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { errorTable } from '../../contract/errors.ts'
import { hasCode } from '../lib/error-codes.ts'
import { DomainError } from '../shared/errors.ts'
import { newRequestId } from '../shared/ids.ts'
import { errorBodyOf } from './errors.ts'

/** Returns the error to send for a request that Node could not parse. */
export function errorOfUnparsedRequest(error: Error, maxHeaderBytes: number): DomainError {
  if (hasCode(error, 'HPE_HEADER_OVERFLOW')) {
    return new DomainError(
      'headers_too_large',
      `The headers of the request are larger than the limit of ${maxHeaderBytes} bytes: send less.`,
    )
  }
  if (hasCode(error, 'HPE_CHUNK_EXTENSIONS_OVERFLOW')) {
    return new DomainError('payload_too_large', 'The body has too many chunk extensions: send none.')
  }
  if (hasCode(error, 'ERR_HTTP_REQUEST_TIMEOUT')) {
    return new DomainError('request_timeout', 'The request did not arrive in time: send it again, all at once.')
  }
  return new DomainError('malformed_request', 'The bytes sent are not an HTTP/1.1 request that can be read.')
}

/** Returns the error for a CONNECT request, from a client that uses this server as a proxy. */
export function noTunnels(): DomainError {
  return new DomainError('method_not_allowed', 'This server is not a proxy: it has no CONNECT.')
}

/** Sends `error` on a connection without a parsed request, and closes it. */
export function refuse(socket: Socket, error: DomainError): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const requestId = newRequestId()
  const body = JSON.stringify(errorBodyOf(error, requestId))
  const { status } = errorTable[error.code]
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `X-Request-Id: ${requestId}`,
    ...(status === 405 ? ['Allow: GET, HEAD, POST, PATCH, DELETE'] : []),
    'Connection: close',
  ]
  // The client may disconnect before it has read the response.
  socket.on('error', () => socket.destroy())
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  socket.destroySoon()
}
