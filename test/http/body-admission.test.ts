import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readJsonBody } from '../../server/http/body.ts'
import { type ByteSemaphore, createByteSemaphore } from '../../server/http/body-admission.ts'
import { DomainError } from '../../server/shared/errors.ts'

/** Whether a promise has settled by the time all that waits has had its turn. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  void promise.then(() => {
    settled = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  return settled
}

describe('the room for large bodies', () => {
  test('lets in what fits, and the others in their order', async () => {
    const memory = createByteSemaphore(10)
    const leaveFirst = await memory.acquire(6)
    const leaveSecond = await memory.acquire(4)
    const third = memory.acquire(5)
    const fourth = memory.acquire(1)
    leaveSecond()
    expect([await isSettled(third), await isSettled(fourth)]).toEqual([false, false])
    leaveFirst()
    expect([await isSettled(third), await isSettled(fourth)]).toEqual([true, true])
  })

  test('is given back once, however often that is said', async () => {
    const memory = createByteSemaphore(10)
    const leave = await memory.acquire(10)
    leave()
    leave()
    await memory.acquire(10)
    expect(await isSettled(memory.acquire(1))).toBe(false)
  })

  test('takes one that is larger than all of it, alone', async () => {
    const memory = createByteSemaphore(10)
    const leave = await memory.acquire(11)
    const other = memory.acquire(1)
    expect(await isSettled(other)).toBe(false)
    leave()
    expect(await isSettled(other)).toBe(true)
  })
})

const usualBytes = 100
const maxBytes = 1_000

/** A service whose route `/files` may take large bodies, and whose route `/` may not. */
async function serve(memory: ByteSemaphore) {
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

/** A room that says who asks, and lets nobody in before the test does. */
function guardedRoom() {
  const asked: number[] = []
  const arrived = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const memory: ByteSemaphore = {
    async acquire(bytes) {
      asked.push(bytes)
      arrived.resolve()
      await open.promise
      return () => left.resolve()
    },
  }
  return { room: memory, asked, arrived: arrived.promise, open: open.resolve, left: left.promise }
}

const large = JSON.stringify('x'.repeat(900))

describe('a body with files', () => {
  test('waits for room beyond the usual limit, and gives it back when its request is over', async () => {
    const { room: memory, asked, arrived, open, left } = guardedRoom()
    const { post, handled } = await serve(memory)
    const answer = post('/files', large)
    await arrived
    expect(await post('/files', '"small"')).toEqual({ status: 200, length: 7 })
    expect([asked, handled]).toEqual([[large.length], ['"small"']])
    open()
    expect(await answer).toEqual({ status: 200, length: large.length })
    await left
  })

  test('gives the room back when its client has left meanwhile', async () => {
    const { room: memory, arrived, open, left } = guardedRoom()
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

  test('of unknown length has to have room for the longest', async () => {
    const { room: memory, asked, arrived, open } = guardedRoom()
    const { port } = await serve(memory)
    const socket = connect(port, '127.0.0.1').setEncoding('utf8')
    onTestFinished(() => void socket.destroy())
    const head =
      'POST /files HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
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
  ])('that is too large for %s is refused, and says what the limit is', async (path, body, limit) => {
    const { post } = await serve(createByteSemaphore(2 * maxBytes))
    expect(await post(path, body)).toEqual({
      status: 413,
      code: 'payload_too_large',
      message: `The body is larger than the limit of ${limit} bytes for this operation: send less.`,
    })
  })
})
