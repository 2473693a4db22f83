import { PassThrough } from 'node:stream'
import type { Response } from 'express'
import { idPattern } from '../../contract/ids.ts'
import { beginningId, type EventStreams, type StreamQuery, type StreamSink } from '../events/streams.ts'
import { invalidField } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'
import { setOpenEnded } from './open-ended.ts'
import type { RouteGate, RouteInput, RouteRequest } from './route-handler.ts'

/** Milliseconds between two comments that keep a stream open, and between two looks at the rights of its caller. */
export const heartbeatMs = 15_000
/** Heartbeats in a row at which a reader has not taken what waits for it. At the next one it is cut off. */
const maxStuckHeartbeats = 2

/** Bytes of events that may wait for a reader. One event may go beyond it. */
const bufferBytes = 131_072

const lastEventId = 'last-event-id'

/** Answers requests with streams of events. */
export type FollowEvents = (input: RouteInput, scope: Scope, query: StreamQuery) => Promise<PassThrough>

type Options = {
  streams: EventStreams
  /** Throw when the caller of a request may not read events any more. Run again at each heartbeat. */
  gates: readonly RouteGate[]
  /** Milliseconds between heartbeats. Default: `heartbeatMs`. */
  heartbeatMs?: number | undefined
}

/**
 * Returns a function that starts a stream and returns its body. The body ends with the stream, which ends when the
 * client disconnects, the service stops, or the caller loses the right to it: within two heartbeats.
 *
 * It throws as `EventStreams.open` does, and `validation_error` for a malformed `Last-Event-ID`.
 *
 * Source: WHATWG HTML §9.2 (server-sent events).
 */
export function createFollowEvents({ streams, gates, heartbeatMs: beatMs = heartbeatMs }: Options): FollowEvents {
  return async ({ req, res }, scope, query) => {
    // One half for each of its two sides.
    const body = new PassThrough({ highWaterMark: bufferBytes / 2 })
    // A slow reader may take the end long after it was written. Nothing may be written behind it.
    const write = (text: string) => !body.writableEnded && !body.destroyed && body.write(text)
    const sink: StreamSink = {
      write: ({ id, json }) => write(`id: ${id}\ndata: ${json}\n\n`),
      end: () => body.end(),
    }
    const stream = await streams.open(scope, { ...query, after: lastEventIdOf(req) ?? query.after }, sink)
    let stuckBeats = 0
    // One look at the rights at a time: a slow database must not gather them.
    let isChecking = false
    const beat = setInterval(async () => {
      stuckBeats = body.writableNeedDrain || body.writableEnded ? stuckBeats + 1 : 0
      if (stuckBeats > maxStuckHeartbeats) {
        setOpenEnded(res, false)
        res.destroy()
      }
      if (isChecking) return
      isChecking = true
      const isGoingOn = await isAllowed(req, res)
      isChecking = false
      if (!isGoingOn) end()
      else if (!body.writableNeedDrain) write(':\n\n')
    }, beatMs)
    const end = () => {
      stream.close()
      body.end()
    }
    const close = () => {
      clearInterval(beat)
      stream.close()
      body.destroy()
    }
    body.on('drain', () => {
      stuckBeats = 0
      stream.drained()
    })
    res.once('close', close)
    // The client may be gone already.
    if (res.closed) close()
    // Its client closes it, since it has no end of its own.
    setOpenEnded(res, true)
    res.setHeader('Content-Type', 'text/event-stream')
    // Keeps nginx from holding events back.
    res.setHeader('X-Accel-Buffering', 'no')
    // An id without data sets the last event id of the client, and tells it of no event.
    if (req.method === 'HEAD') end()
    else write(`id: ${stream.startedAfter}\n\n`)
    return body
  }

  async function isAllowed(req: RouteRequest, res: Response): Promise<boolean> {
    try {
      for (const gate of gates) await gate(req, res, () => undefined)
      return !res.closed
    } catch {
      // A database that does not respond ends the stream too: the client opens it again, and is told why it cannot.
      return false
    }
  }
}

function lastEventIdOf(req: RouteRequest): string | undefined {
  const given = req.headersDistinct[lastEventId]?.join()
  if (given === undefined || given === '') return undefined
  if (given === beginningId || idPattern('event').test(given)) return given
  throw invalidField(`header.${lastEventId}`, 'must be the `id` of the last event that you got')
}
