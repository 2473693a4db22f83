import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { describe, expect, onTestFinished, test } from 'vitest'
import { errorBody } from '../../contract/errors.ts'
import { type ListenOptions, listen } from '../../server/http/server.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { OperatorError } from '../../server/shared/errors.ts'
import { sendRaw } from '../support/raw-http.ts'
import { whenClosed } from '../support/sockets.ts'

const logger = createLogger({ level: 'silent' })
const hello: RequestListener = (_req, res) => res.end('hello')

async function serve(app: RequestListener = hello, options: Partial<ListenOptions> = {}) {
  const server = await listen({ app, host: '127.0.0.1', port: 0, logger, ...options })
  onTestFinished(() => server.close(0))
  return server
}

async function refused(url: string, bytes: string) {
  const answer = await sendRaw(url, { bytes })
  expect(answer.headers).toMatchObject({ connection: 'close', 'content-type': 'application/json; charset=utf-8' })
  const { error } = errorBody.parse(JSON.parse(answer.body))
  expect(answer.headers['x-request-id']).toBe(error.requestId)
  return { status: answer.status, headers: answer.headers, ...error }
}

describe('what is no request', () => {
  test.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['another version', 'GET / HTTP/9.9\r\n\r\n'],
    ['a header without a name', 'GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n'],
    ['a space in the path', 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
    ['a length and chunks', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ])('bytes that are no request (%s) are refused in the shape of the contract', async (_, bytes) => {
    const { url } = await serve()

    expect(await refused(url, bytes)).toMatchObject({ status: 400, code: 'malformed_request' })
  })

  test('a request with too large headers is told how large they may be', async () => {
    const { url } = await serve()

    const answer = await refused(url, `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(17_000)}\r\n\r\n`)

    expect(answer).toMatchObject({ status: 431, code: 'headers_too_large' })
    expect(answer.message).toContain('16384 bytes')
  })

  test('a request for a tunnel is refused', async () => {
    const { url } = await serve()

    const answer = await refused(url, 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n')

    expect(answer).toMatchObject({ status: 405, code: 'method_not_allowed' })
    expect(answer.headers.allow).toContain('GET')
  })

  test.each([
    ['head', { headersTimeoutMs: 60, requestTimeoutMs: 60_000 }, 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow'],
    [
      'body',
      { headersTimeoutMs: 50, requestTimeoutMs: 60 },
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12',
    ],
  ])('a request whose %s does not arrive in time is refused', async (_, timeouts, bytes) => {
    const limits = { ...timeouts, timeoutCheckMs: 20 }
    const { url } = await serve((req, res) => void req.resume().on('end', () => res.end()), { limits })

    expect(await refused(url, bytes)).toMatchObject({ status: 408, code: 'request_timeout' })
  })

  test('what is no request behind an answer that has begun breaks it off and is not mixed into it', async () => {
    const { address } = await serve((_req, res) => {
      res.writeHead(200, { 'Content-Length': '100' })
      res.write('begun')
    })
    const socket = connect(address.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'))
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
      if (text.endsWith('begun')) socket.write('no request\r\n\r\n')
    })

    await whenClosed(socket)

    expect(text).toMatch(/^HTTP\/1\.1 200 OK.*begun$/s)
  })
})

test('a client that does not read its answer is not waited for', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { address } = await serve(
    (_req, res) => {
      res.once('close', end)
      // More than the buffers between the two hold.
      res.end(Buffer.alloc(64 * 1024 * 1024))
    },
    { limits: { stallTimeoutMs: 100 } },
  )
  const socket = await connected(address.port)
  socket.pause().write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')

  await ended
})

test('an expectation nobody knows is let pass', async () => {
  const { url } = await serve()

  const answer = await sendRaw(url, {
    bytes: 'GET / HTTP/1.1\r\nHost: a\r\nExpect: the-best\r\nConnection: close\r\n\r\n',
  })

  expect(answer).toMatchObject({ status: 200, body: 'hello' })
})

describe('an address that cannot be had', () => {
  test('an address that another program has is told to the operator', async () => {
    const { address } = await serve()

    const second = listen({ app: hello, host: '127.0.0.1', port: address.port, logger })

    await expect(second).rejects.toThrow(OperatorError)
    await expect(second).rejects.toThrow(`port ${address.port} on 127.0.0.1 is in use`)
  })

  test.each(['192.0.2.1', 'no-such-host.invalid'])(
    'an address that is none of this machine is told to the operator: %s',
    async (host) => {
      const attempt = listen({ app: hello, host, port: 0, logger })

      await expect(attempt).rejects.toThrow(OperatorError)
      await expect(attempt).rejects.toThrow(/set HOST to one/)
    },
  )
})

test.each(['0.0.0.0', ...(hasIpv6() ? ['::1'] : [])])('the URL of %s is one that works here', async (host) => {
  const { url } = await serve(hello, { host })

  expect(await (await fetch(url)).text()).toBe('hello')
})

test('closing lets a running request finish, tells its client, and takes no other', async () => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<() => void>()
  const server = await serve((_req, res) => arrive(() => void res.end('finished')))
  const answering = fetch(server.url)
  const finish = await arrived

  const closing = server.close(10_000)
  await expect(fetch(server.url)).rejects.toThrow()
  finish()
  const answer = await answering

  expect(answer.headers.get('connection')).toBe('close')
  expect(await answer.text()).toBe('finished')
  await closing
  expect(server.close(10_000)).toBe(closing)
})

test('closing does not wait for connections without a request', async () => {
  const server = await serve()
  const silent = await connected(server.address.port)
  const half = await connected(server.address.port)
  half.write('GET / HTTP/1.1\r\nHo')
  const kept = await connected(server.address.port)
  kept.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(kept, 'data')

  const ends = [silent, half, kept].map(whenClosed)
  // Long enough for the test to fail if it waited.
  await server.close(60_000)

  await Promise.all(ends)
})

test('closing also ends a connection whose answer had begun without saying so', async () => {
  const { promise: begun, resolve: begin } = Promise.withResolvers<() => void>()
  const server = await serve((_req, res) => {
    res.writeHead(200, { 'Content-Length': '4' })
    res.write('be')
    begin(() => void res.end('gn'))
  })
  const socket = await connected(server.address.port)
  const closed = whenClosed(socket.resume())
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  const finish = await begun

  const closing = server.close(60_000)
  finish()

  await Promise.all([closing, closed])
})

test('closing breaks what is not finished at the deadline', async () => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  const server = await serve(() => arrive())
  const answering = fetch(server.url)
  // Listened to at once, since it may fail before it is awaited.
  const broken = expect(answering).rejects.toThrow()
  await arrived

  await server.close(20)

  await broken
})

async function connected(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  // It may be reset.
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

function hasIpv6(): boolean {
  return Object.values(networkInterfaces())
    .flat()
    .some((network) => network?.address === '::1')
}
