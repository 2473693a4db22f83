import type { IncomingMessage } from 'node:http'
import { MIMEType } from 'node:util'
import type { Request, RequestHandler, Response } from 'express'
import type { RouteMetadata } from '../../contract/route.ts'
import { type ByteCollector, collectBytes, releaseBytes } from '../lib/byte-buffer.ts'
import { DomainError } from '../shared/errors.ts'
import type { ByteSemaphore } from './body-admission.ts'
import { readJson } from './read-json.ts'

const rawBodies = new WeakMap<IncomingMessage, Buffer>()
const noBody = Buffer.alloc(0)

/** The body as it was sent, byte for byte, of a request with an `Idempotency-Key`; empty when there was none. */
export function rawBodyOf(req: IncomingMessage): Buffer {
  return rawBodies.get(req) ?? noBody
}

/** Forgets the body as it was sent, which may be large. */
export function forgetRawBody(req: IncomingMessage): void {
  releaseBytes(rawBodyOf(req))
  rawBodies.delete(req)
}

/** The route a request was found to be for; none where a middleware stands alone. */
type Routed = Request & { tsRestRoute?: { metadata?: unknown } }

/** Bytes, as written, of a string of a field that is not a long one. */
export const maxStringBytes = 131_072
/** Names and values in a usual body, and in one that may hold files: a full batch has a fifth of them. */
const maxValues = 10_000
const maxLargeValues = 100_000
/** Objects and lists within each other. */
const maxDepth = 32
/** Beside its long texts, a body that may hold files has so many times the bytes of a usual one at most. */
const othersOfLarge = 4

/** What bodies with files in them may be. */
export type LargeBodies = {
  maxBytes: number
  /** Where those above the usual limit have to be as long as their request lasts. */
  memory: ByteSemaphore
}

/**
 * Reads a JSON body into `req.body`; `undefined` when none was sent. A body with GET, HEAD or DELETE
 * means nothing and is not looked at.
 *
 * `unsupported_media_type` when it is not JSON in plain UTF-8, `payload_too_large` when it is longer
 * than `maxBytes` or of too many parts, `malformed_json` when it cannot be parsed. A string that is longer than
 * any field of the route may be is read as another that is too long, for the schema to refuse: see `readJson`.
 *
 * Source: RFC 8259 §8.1 (UTF-8), RFC 9110 §8.4 (encodings), §9.3.1, §9.3.5 (GET, DELETE).
 *
 * @param large The limit of routes whose bodies may hold files. Default: that of the others.
 */
export function readJsonBody(maxBytes: number, large?: LargeBodies): RequestHandler {
  return async (req: Routed, res, next) => {
    if (carriesBody(req)) {
      checkMediaType(req)
      const isLarge = large !== undefined && metadataOf(req).takesAttachments === true
      const bytes = await (isLarge
        ? collectLarge(req, res, { ...large, usualBytes: maxBytes })
        : collect(req, maxBytes))
      if (bytes.length > 0) {
        req.body = await readJson(bytes, {
          longFields: metadataOf(req).longFields ?? {},
          maxStringBytes,
          maxOtherBytes: isLarge ? othersOfLarge * maxBytes : maxBytes,
          maxValues: isLarge ? maxLargeValues : maxValues,
          maxDepth,
        })
        // Nobody else reads it, and it may be large.
        if (req.headers['idempotency-key'] === undefined) releaseBytes(bytes)
        else rawBodies.set(req, bytes)
      }
    }
    next()
  }
}

function metadataOf({ tsRestRoute }: Routed): Partial<RouteMetadata> {
  return Object(tsRestRoute?.metadata)
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
async function collect(req: Request, maxBytes: number, onData?: (body: ByteCollector) => void): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)

  return new Promise((resolve, reject) => {
    const body = collectBytes(maxBytes)
    req.on('data', (chunk: Buffer) => {
      body.add(chunk)
      if (body.length > maxBytes) reject(tooLarge(maxBytes))
      onData?.(body)
    })
    // What was gathered is forgotten: the request keeps its listeners.
    req.on('end', () => resolve(body.take()))
  })
}

/** The same; beyond `usualBytes`, nothing is read before there is room for it. */
async function collectLarge(
  req: Request,
  res: Response,
  { maxBytes, usualBytes, memory }: LargeBodies & { usualBytes: number },
): Promise<Buffer> {
  let isAsking = false
  const announced = req.headers['content-length']
  return collect(req, maxBytes, (body) => {
    if (isAsking || body.length <= usualBytes || body.length > maxBytes) return
    isAsking = true
    req.pause()
    void memory.acquire(Number(announced ?? maxBytes)).then((leave) => {
      // Given back when the request is over, however it ends; it may be already.
      if (res.closed) leave()
      else res.once('close', leave)
      // Putting many pieces together at the end would take the memory twice.
      if (announced !== undefined) body.reserve(Number(announced))
      req.resume()
    })
  })
}

function tooLarge(maxBytes: number): DomainError {
  return new DomainError(
    'payload_too_large',
    `The body is larger than the limit of ${maxBytes} bytes for this operation: send less.`,
  )
}
