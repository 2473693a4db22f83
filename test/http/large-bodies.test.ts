import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { readJsonBody } from '../../server/http/body.ts'
import { createSemaphore, type Semaphore } from '../../server/lib/semaphore.ts'
import { DomainError } from '../../server/shared/errors.ts'

const usualBytes = 100
const maxBytes = 1_000

/** A service whose route `/files` may take large bodies, and whose route `/` may not. */
async function serve(memory: Semaphore) {
  const handled: string[] = []
  const app = express()
  const mark: RequestHandler = (req, _res, next) => {
    Object.assign(req, { tsRestRoute: { metadata: { takesAttachments: req.path === '/files' } } })
    next()
  }
  const answer: RequestHandler = (req, res) => {
    handled.push(JSON.stringify(req.body))
    res.json({ length: JSON.stringify(req.body).length })
  }
  const fail: ErrorRequestHandler = (error, _req, res, _next) => {
    res.status(413).json({ code: error instanceof DomainError ? error.code : String(error), message: error.message })
  }
  app.use(mark, readJsonBody(usualBytes, { maxBytes, memory: memory }), answer, fail)
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const post = async (path: string, body: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    return { status: answer.status, ...Object(await answer.json()) }
  }
  return { server, port, handled, post }
}

/** A semaphore that records who asks, and gives no permits before the test says so. */
function guardedMemory() {
  const asked: number[] = []
  const arrived = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const memory: Semaphore = {
    async acquire(bytes = 1) {
      asked.push(bytes)
      arrived.resolve()
      await open.promise
      return () => left.resolve()
    },
  }
  return { memory, asked, arrived: arrived.promise, open: open.resolve, left: left.promise }
}

const large = JSON.stringify('x'.repeat(900))

test('a body with files waits for memory beyond the usual limit, and releases it when its request is over', async () => {
  const { memory, asked, arrived, open, left } = guardedMemory()
  const { post, handled } = await serve(memory)
  const answer = post('/files', large)
  await arrived
  expect(await post('/files', '"small"')).toEqual({ status: 200, length: 7 })
  expect([asked, handled]).toEqual([[large.length], ['"small"']])
  open()
  expect(await answer).toEqual({ status: 200, length: large.length })
  await left
})

test('a body with files releases its memory when its client has left meanwhile', async () => {
  const { memory, arrived, open, left } = guardedMemory()
  const { server, port, handled } = await serve(memory)
  const requested = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `POST /files HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${large.length}\r\n\r\n`,
  )
  socket.write(large.slice(0, 500))
  await arrived
  const [, response] = await requested
  socket.destroy()
  await once(response, 'close')
  open()
  await left
  expect(handled).toEqual([])
})

test('a body with files of unknown length waits for memory for the longest', async () => {
  const { memory, asked, arrived, open } = guardedMemory()
  const { port } = await serve(memory)
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  onTestFinished(() => void socket.destroy())
  const head = 'POST /files HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
  socket.write(`${head}${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`)
  await arrived
  expect(asked).toEqual([maxBytes])
  open()
  const [answer] = await once(socket, 'data')
  expect(answer).toContain('200 OK')
})

test.each([
  ['/files', JSON.stringify('x'.repeat(999)), 1_000],
  ['/', large, 100],
])('a body with files that is too large for %s is refused, and says what the limit is', async (path, body, limit) => {
  const { post } = await serve(createSemaphore(2 * maxBytes))
  expect(await post(path, body)).toEqual({
    status: 413,
    code: 'payload_too_large',
    message: `The body is larger than the limit of ${limit} bytes for this operation: send less.`,
  })
})
