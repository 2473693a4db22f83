import type { IncomingMessage } from 'node:http'
import { MIMEType } from 'node:util'
import type { Request, RequestHandler, Response } from 'express'
import { DomainError } from '../errors.ts'
import { gatherBytes } from '../gather-bytes.ts'
import type { BodyRoom } from './body-room.ts'
import { structuralBytes } from './json-structure.ts'

const rawBodies = new WeakMap<IncomingMessage, Buffer>()
const noBody = Buffer.alloc(0)

/** The body as it was sent, byte for byte; empty when there was none. */
export function rawBodyOf(req: IncomingMessage): Buffer {
  return rawBodies.get(req) ?? noBody
}

/** The route a request was found to be for; none where a middleware stands alone. */
type Routed = Request & { tsRestRoute?: { metadata?: unknown } }

/** What bodies with files in them may be. */
export type LargeBodies = {
  maxBytes: number
  /** Where those above the usual limit have to be as long as their request lasts. */
  room: BodyRoom
}

/**
 * Reads a JSON body into `req.body`; `undefined` when none was sent. A body with GET, HEAD or DELETE
 * means nothing and is not looked at.
 *
 * `unsupported_media_type` when it is not JSON in plain UTF-8, `payload_too_large` when it is longer
 * than `maxBytes`, `malformed_json` when it cannot be parsed.
 *
 * Source: RFC 8259 §8.1 (UTF-8), RFC 9110 §8.4 (encodings), §9.3.1, §9.3.5 (GET, DELETE).
 *
 * @param large The limit of routes whose bodies may hold files. Default: that of the others.
 */
export function readJsonBody(maxBytes: number, large?: LargeBodies): RequestHandler {
  return async (req: Routed, res, next) => {
    if (carriesBody(req)) {
      checkMediaType(req)
      const isLarge = large !== undefined && takesAttachments(req)
      const bytes = await (isLarge
        ? collectLarge(req, res, { ...large, usualBytes: maxBytes })
        : collect(req, maxBytes))
      if (bytes.length > 0) {
        req.body = parse(bytes)
        rawBodies.set(req, bytes)
      }
    }
    next()
  }
}

function takesAttachments({ tsRestRoute }: Routed): boolean {
  return Object(tsRestRoute?.metadata).takesAttachments === true
}

function carriesBody({ method, headers }: Request): boolean {
  if (method === 'GET' || method === 'HEAD' || method === 'DELETE') return false
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

function checkMediaType({ headers }: Request): void {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new DomainError('unsupported_media_type', 'The body is compressed: send it without Content-Encoding.')
  }
  const type = headers['content-type']
  if (type === undefined) {
    throw new DomainError(
      'unsupported_media_type',
      'The body has no Content-Type: send it with "Content-Type: application/json".',
    )
  }
  if (type !== 'application/json' && !isJsonInUtf8(type)) {
    throw new DomainError(
      'unsupported_media_type',
      'The Content-Type of the body is not supported: send JSON in UTF-8, with "Content-Type: application/json".',
    )
  }
}

function isJsonInUtf8(contentType: string): boolean {
  try {
    const type = new MIMEType(contentType)
    const charset = type.params.get('charset')
    return type.essence === 'application/json' && (charset === null || /^utf-?8$/i.test(charset))
  } catch {
    return false
  }
}

/**
 * The whole body. What comes beyond `maxBytes` is not kept, and discarded by node after the answer.
 * Never settles when the request breaks off: nobody is left to be answered.
 */
async function collect(req: Request, maxBytes: number, onData?: (length: number) => void): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)

  return new Promise((resolve, reject) => {
    const body = gatherBytes(maxBytes)
    req.on('data', (chunk: Buffer) => {
      body.add(chunk)
      if (body.length > maxBytes) reject(tooLarge(maxBytes))
      onData?.(body.length)
    })
    req.on('end', () => resolve(body.bytes()))
  })
}

/** The same; beyond `usualBytes` there may be strings only, and nothing is read before there is room for it. */
async function collectLarge(
  req: Request,
  res: Response,
  { maxBytes, usualBytes, room }: LargeBodies & { usualBytes: number },
): Promise<Buffer> {
  let isAsking = false
  const bytes = await collect(req, maxBytes, (length) => {
    if (isAsking || length <= usualBytes || length > maxBytes) return
    isAsking = true
    req.pause()
    void room.enter(Number(req.headers['content-length'] ?? maxBytes)).then((leave) => {
      // Given back when the request is over, however it ends; it may be already.
      if (res.closed) leave()
      else res.once('close', leave)
      req.resume()
    })
  })
  // What makes it large has to be texts: of anything else the parser makes many times as much.
  if (bytes.length > usualBytes && structuralBytes(bytes, usualBytes + 1) > usualBytes) {
    throw new DomainError(
      'payload_too_large',
      `The body has more than ${usualBytes} bytes that are not in its strings: send less at once.`,
    )
  }
  return bytes
}

function tooLarge(maxBytes: number): DomainError {
  return new DomainError(
    'payload_too_large',
    `The body is larger than the limit of ${maxBytes} bytes for this operation: send less.`,
  )
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function parse(bytes: Buffer): unknown {
  let reason = 'it is not UTF-8'
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch (error) {
    if (error instanceof SyntaxError) reason = error.message
  }
  throw new DomainError('malformed_json', `The body is not JSON: ${reason}.`)
}
