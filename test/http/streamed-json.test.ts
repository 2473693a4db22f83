import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import express, { type Response } from 'express'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../../server/http/server.ts'
import { writeJson } from '../../server/http/streamed-json.ts'
import { createLogger } from '../../server/observability/logging.ts'

/** Serves `served.body` with `served.status` at `/`, and something small at `/small`. */
async function serve() {
  const app = express().disable('etag')
  const served = { body: undefined as unknown, status: 201 }
  app.use(writeJson)
  let look: (res: Response) => void = () => undefined
  app.get('/', (_req, res) => {
    look(res)
    res.status(served.status).json(served.body)
  })
  app.get('/small', (_req, res) => res.json({}))
  const server = await listen({ app, host: '127.0.0.1', port: 0, logger: createLogger({ level: 'silent' }) })
  onTestFinished(() => server.close(0))
  const onAnswer = (call: typeof look) => {
    look = call
  }
  return { served, url: server.url, port: server.address.port, onAnswer }
}

/** Sends a request, which closes the connection. Returns the head of its response, and the body. */
async function ask(port: number, head: string): Promise<string[]> {
  const socket = connect(port, '127.0.0.1')
  socket.write(`${head}\r\n\r\n`)
  return (await text(socket)).split('\r\n\r\n')
}

test('JSON with long texts says what it would say at once', async () => {
  const { served, url } = await serve()
  const piece = fc.constantFrom('a', '"', '\\', '\n', 'é', '😀', '\ud83d', '\u2028')
  const longText = fc.tuple(fc.array(piece, { minLength: 1, maxLength: 9 }), fc.nat(9)).map(([pieces, more]) => {
    const text = pieces.join('')
    return 'x'.repeat(more) + text.repeat(Math.ceil(2_300_000 / text.length))
  })
  const body = fc.record({ id: fc.string(), html: longText, text: fc.option(longText), list: fc.array(fc.string()) })
  await fc.assert(
    fc.asyncProperty(body, async (value) => {
      served.body = value
      const answer = await fetch(url)
      expect(answer.status).toBe(201)
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect((await answer.text()) === JSON.stringify(value)).toBe(true)
    }),
    { numRuns: 4 },
  )
})

test('the event loop turns between the slices of a long answer', async () => {
  const order: string[] = []
  const { served, url, onAnswer } = await serve()
  served.body = { html: 'ü'.repeat(5_000_000) }
  onAnswer((res) => {
    const { write } = res
    res.write = (...given: unknown[]) => {
      if (given[0] instanceof Uint8Array && given[0].length > 1_000) order.push('slice')
      return Reflect.apply(write, res, given)
    }
    const turn = () => {
      if (order.at(-1) === 'slice') order.push('turn')
      if (!res.writableEnded) setImmediate(turn)
    }
    setImmediate(turn)
  })
  await (await fetch(url)).text()
  expect(order.slice(0, 9)).toEqual(['slice', 'turn', 'slice', 'turn', 'slice', 'turn', 'slice', 'turn', 'slice'])
})

test('JSON without long texts tells its length in bytes', async () => {
  const { served, url } = await serve()
  for (const html of ['short', 'é😀\ud83d\u2028', 'ü'.repeat(100_000), '']) {
    served.body = { html, none: null }
    const answer = await fetch(url)
    expect(answer.status).toBe(201)
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(JSON.stringify(served.body))))
    expect(await answer.json()).toEqual(JSON.parse(JSON.stringify(served.body)))
  }
})

test('a HEAD request without long texts is told what GET is, and gets no body', async () => {
  const { served, url, port } = await serve()
  served.body = { html: 'é' }
  const [head, body] = await ask(port, 'HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close')
  const got = await fetch(url)
  for (const name of ['content-type', 'content-length'])
    expect(head?.toLowerCase()).toContain(`${name}: ${got.headers.get(name)}`)
  expect(body).toBe('')
})

test.each([204, 304])('JSON with status %i has no body, nor headers of one', async (status) => {
  const { served, url } = await serve()
  Object.assign(served, { status, body: { html: 'short' } })
  const answer = await fetch(url)
  expect(answer.status).toBe(status)
  expect(await answer.text()).toBe('')
  expect(['content-type', 'content-length'].map((name) => answer.headers.get(name))).toEqual([null, null])
})

test('a client that has any version of JSON without long texts is told so', async () => {
  const { served, port } = await serve()
  Object.assign(served, { status: 200, body: { html: 'short' } })
  const [head, body] = await ask(port, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIf-None-Match: *')
  expect(head).toMatch(/^HTTP\/1.1 304 /)
  expect(body).toBe('')
})

test('a HEAD request gets no body', async () => {
  const { served, url } = await serve()
  served.body = { html: 'x'.repeat(3_000_000) }
  const answer = await fetch(url, { method: 'HEAD' })
  expect(answer.status).toBe(201)
  expect(await answer.text()).toBe('')
})

test('a client that leaves in the middle of a long answer ends it, and others go on', async () => {
  const { served, url, port } = await serve()
  served.body = { html: 'x'.repeat(30_000_000) }
  const socket = connect(port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(socket, 'data')
  socket.destroy()
  expect((await fetch(`${url}/small`)).status).toBe(200)
})

test('what has no JSON has an answer without a body', async () => {
  const { served, url } = await serve()
  served.body = undefined
  const answer = await fetch(url)
  expect({ status: answer.status, text: await answer.text() }).toEqual({ status: 201, text: '' })
})
