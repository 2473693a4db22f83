import { pipeline, Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import { StreamedText } from '../lib/streamed-text.ts'
import { slicesYielding } from '../lib/yielding.ts'

/** A longer text is written in slices of this length, each in a turn of its own: up to 25 ms. Characters of UTF-16. */
const sliceLength = 1_048_576

/**
 * Has `res.json` write JSON with long texts slice by slice, no faster than the client reads, and without a
 * `Content-Length`. `JSON.stringify` would stop the process for as long as it runs, a fifth of a second on 20 MB, and
 * so would writing all of it as UTF-8.
 */
export const streamLongTexts: RequestHandler = (_req, res, next) => {
  const answerAtOnce = res.json
  res.json = (body: unknown) => {
    if (!hasLongText(body)) return answerAtOnce.call(res, body)
    res.setHeader('Content-Type', 'application/json; charset=utf-8')
    // A client that leaves early is told of in the access log. A text that is gone meanwhile breaks the connection.
    pipeline(Readable.from(jsonInTurns(body)), res, () => undefined)
    return res
  }
  next()
}

function hasLongText(value: unknown): boolean {
  if (typeof value === 'string') return value.length > sliceLength
  if (value instanceof StreamedText) return true
  return typeof value === 'object' && value !== null && Object.values(value).some(hasLongText)
}

/** Stands for a long text in the rest of the JSON: nobody can guess it, so it is no text of anybody's. */
const placeholder = crypto.randomUUID()

/** The JSON of `body`, as `JSON.stringify` writes it. What was written of it is forgotten. */
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
      // The quotation marks are those of the placeholder.
      yield Buffer.from(JSON.stringify(slice).slice(1, -1))
    }
  }
}
