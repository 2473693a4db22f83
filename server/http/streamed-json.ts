import { pipeline, Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import { StreamedText } from '../lib/streamed-text.ts'
import { slicesYielding } from '../lib/yielding.ts'

/** UTF-16 code units of a slice. Longer texts are written slice by slice; each blocks the event loop up to 25 ms. */
const sliceLength = 1_048_576

const contentType = 'application/json; charset=utf-8'
/** Responses that have no body. Source: RFC 9110 §15.3.5, §15.3.6, §15.4.5. */
const withoutBody: readonly number[] = [204, 205, 304]

/**
 * Makes `res.json` write JSON with long texts slice by slice, no faster than the client reads, and without a
 * `Content-Length`. `JSON.stringify` would block the event loop while it runs, a fifth of a second for 20 MB, and so
 * would encoding all of it as UTF-8.
 *
 * Other JSON is written at once, with the headers that Express sets. Express takes longer: it parses the content type
 * that it has set itself.
 */
export const writeJson: RequestHandler = (req, res, next) => {
  const sendByExpress = res.json
  res.json = (body: unknown) => {
    if (hasLongText(body)) {
      res.setHeader('Content-Type', contentType)
      // Errors need no handling: the access log shows a client that disconnects, and a text that was deleted meanwhile
      // closes the connection.
      pipeline(Readable.from(jsonInTurns(body)), res, () => undefined)
      return res
    }
    if (withoutBody.includes(res.statusCode) || req.fresh) return sendByExpress.call(res, body)
    const text: string | undefined = JSON.stringify(body)
    if (text === undefined) return sendByExpress.call(res, body)
    res.setHeader('Content-Type', contentType)
    res.setHeader('Content-Length', Buffer.byteLength(text))
    // Node leaves the body out of the response to HEAD.
    return res.end(text)
  }
  next()
}

function hasLongText(value: unknown): boolean {
  if (typeof value === 'string') return value.length > sliceLength
  if (value instanceof StreamedText) return true
  return typeof value === 'object' && value !== null && Object.values(value).some(hasLongText)
}

/** Placeholder of a long text in the rest of the JSON. It is random, so that no stored text contains it. */
const placeholder = crypto.randomUUID()

/** Yields the JSON of `body` as `JSON.stringify` writes it. Texts that were written are freed. */
function jsonInTurns(body: unknown): AsyncGenerator<Buffer> {
  const texts: (string | StreamedText)[] = []
  const rest = JSON.stringify(body, (_, value: unknown) => {
    if (!(value instanceof StreamedText) && (typeof value !== 'string' || value.length <= sliceLength)) return value
    texts.push(value)
    return placeholder
  })
  return withTexts(rest.split(placeholder), texts)
}

async function* withTexts(pieces: readonly string[], texts: (string | StreamedText)[]): AsyncGenerator<Buffer> {
  for (const piece of pieces) {
    yield Buffer.from(piece)
    await nextTurn()
    const text = texts.shift() ?? ''
    for await (const slice of text instanceof StreamedText ? text.pieces() : slicesYielding(text, sliceLength)) {
      // Without quotation marks: those of the placeholder are in `rest`.
      yield Buffer.from(JSON.stringify(slice).slice(1, -1))
    }
  }
}
