import type { IncomingMessage } from 'node:http'
import { MIMEType } from 'node:util'
import type { Request, RequestHandler, Response } from 'express'
import { importLimits } from '../../contract/import-files.ts'
import type { RouteMetadata } from '../../contract/route.ts'
import { type ByteCollector, collectBytes, releaseBytes } from '../lib/byte-buffer.ts'
import type { Semaphore } from '../lib/semaphore.ts'
import { DomainError } from '../shared/errors.ts'
import { readJson } from './read-json.ts'
import { allowSlowBody } from './slow-bodies.ts'

const rawBodies = new WeakMap<IncomingMessage, Buffer>()
const noBody = Buffer.alloc(0)

/** Returns the bytes of the body of a request with an `Idempotency-Key`. Empty when it had no body. */
export function rawBodyOf(req: IncomingMessage): Buffer {
  return rawBodies.get(req) ?? noBody
}

/** Frees the bytes of the body, which may be many. */
export function forgetRawBody(req: IncomingMessage): void {
  releaseBytes(rawBodyOf(req))
  rawBodies.delete(req)
}

/** A request with its route, if one has matched. */
type Routed = Request & { tsRestRoute?: { metadata?: unknown } }

/** Most bytes, as written in JSON, of a string in a field that is not a long one. */
export const maxStringBytes = 131_072
/** Most names and values in a usual body, and in one that may hold files. A full batch has a fifth of them. */
const maxValues = 10_000
const maxLargeValues = 100_000
/** Deepest nesting of objects and lists. */
const maxDepth = 32
/** Factor of `maxBytes` for the bytes, without long texts, of a body that may hold files. */
const othersOfLarge = 4

/** Limits of bodies that may hold files. */
export type LargeBodies = {
  maxBytes: number
  /** Bodies above the usual limit take their bytes from it until the request ends. */
  memory: Semaphore
}

/**
 * Reads a JSON body into `req.body`, which stays `undefined` when no body was sent. A body with GET, HEAD or DELETE has
 * no meaning and is ignored.
 *
 * Throws `unsupported_media_type` when the body is not uncompressed JSON in UTF-8, `payload_too_large` when it is
 * longer than `maxBytes` or has too many parts, and `malformed_json` when it cannot be parsed. A string that is longer
 * than its field allows is replaced by another one that the schema refuses as too long: see `readJson`.
 *
 * Source: RFC 8259 §8.1 (UTF-8), RFC 9110 §8.4 (encodings), §9.3.1, §9.3.5 (GET, DELETE).
 *
 * @param large Limits of routes whose bodies may hold files. Default: those of other routes.
 */
export function readJsonBody(maxBytes: number, large?: LargeBodies): RequestHandler {
  return async (req: Routed, res, next) => {
    const { takesFile } = metadataOf(req)
    if (takesFile) {
      checkFileType(req, takesFile)
      // The use case reads it as it arrives.
      allowSlowBody(req)
    } else if (carriesBody(req)) {
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
        // Only the idempotency fingerprint reads the bytes again, and there may be many.
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

function checkFileType(req: Request, types: readonly string[]): void {
  const { headers } = req
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new DomainError('unsupported_media_type', 'The file is compressed: send it without Content-Encoding.')
  }
  const given = headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? ''
  if (!types.includes(given)) {
    const known = types.map((type) => `"Content-Type: ${type}"`).join(' or ')
    throw new DomainError('unsupported_media_type', `The body is not a file: send it with ${known}.`)
  }
  if (Number(headers['content-length'] ?? 0) > importLimits.fileBytes) throw tooLarge(importLimits.fileBytes)
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
 * Returns the whole body as it is. Throws `payload_too_large`: bytes beyond `maxBytes` are not kept, and Node discards
 * them after the response. The promise never settles when the client disconnects: there is no one left to respond to.
 */
export async function collect(req: Request, maxBytes: number, onData?: (body: ByteCollector) => void): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)

  return new Promise((resolve, reject) => {
    const body = collectBytes(maxBytes)
    req.on('data', (chunk: Buffer) => {
      body.add(chunk)
      if (body.length > maxBytes) reject(tooLarge(maxBytes))
      onData?.(body)
    })
    // `take` frees the collected bytes, because the request keeps its listeners.
    req.on('end', () => resolve(body.take()))
  })
}

/** As `collect`, but a body above `usualBytes` is read on only when its memory has been admitted. */
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
      // Released when the response closes, which may have happened already.
      if (res.closed) leave()
      else res.once('close', leave)
      // Joining many pieces at the end would need the memory twice.
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
