import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { listen } from '../../server/http/server.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { rounds } from './support/rounds.ts'

/*
 * Clients that take hold of connections and give nothing back. How long each is put up with is set in
 * server/http/server.ts; that it is not put up with for ever is tested with shorter times here.
 */

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  // The server may cut it.
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

/**
 * Reads until the connection has ended, by a reset too: the server answers with a piece of the client unread, and a
 * reset follows the answer (RFC 9112, section 9.6).
 */
async function readToEnd(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  await new Promise((resolve) => socket.once('close', resolve))
  return text
}

/** How slowly a head is sent, and how much of it: in less than the ten seconds that the service waits for one. */
const slow = { everyMs: rounds({ short: 250, long: 1_000 }), bytes: rounds({ short: 5, long: 7 }) }

/** Writes a piece again and again, as fast as the other side takes it, until the connection is closed. */
function drip(socket: Socket, piece: string | Buffer): void {
  const next = () => {
    if (!socket.destroyed) socket.write(piece, () => setImmediate(next))
  }
  next()
}

/** Writes a piece at once and at every interval after it, until the connection is closed, and counts the pieces. */
function dripSlowly(socket: Socket, piece: string, everyMs: number): { readonly pieces: number } {
  const dripped = { pieces: 0 }
  const next = () => {
    dripped.pieces += 1
    socket.write(piece)
  }
  const timer = setInterval(next, everyMs)
  socket.once('close', () => clearInterval(timer))
  next()
  return dripped
}

describe('while strangers hold connections', () => {
  let service: TestService
  let others = 0

  beforeAll(async () => {
    service = await startTestService()
  })
  afterAll(() => service?.stop())

  const port = () => Number(new URL(service.url).port)
  const openMany = (count: number) => Promise.all(Array.from({ length: count }, () => open(port())))
  const head = (more: string) =>
    `POST /v1/subscribers HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${service.keys.live}\r\nContent-Type: application/json\r\n${more}`

  /** Another client's day: it writes, its event is delivered, and it reads that it was. */
  async function expectOthersServed(): Promise<void> {
    await using receiver = await startReceiver()
    const { id } = await service.client.succeed(contract.webhooks.create, {
      body: { url: receiver.url, events: ['subscriber.added'] },
    })
    await Promise.all(
      Array.from({ length: 20 }, () =>
        service.client.succeed(contract.subscribers.create, { body: { email: `other${++others}@example.com` } }),
      ),
    )
    await receiver.received(20)
    expect(await service.client.send('GET', '/readyz')).toMatchObject({ status: 200 })
    await service.client.succeed(contract.webhooks.delete, { params: { id } })
  }

  test('others are served beside 1,000 connections that say nothing', async () => {
    await openMany(1_000)
    await expectOthersServed()
  })

  test(`others are served all the while beside 500 connections that send a head, a byte every ${slow.everyMs} ms`, async () => {
    const sockets = await openMany(500)
    const drips = sockets.map((socket) => {
      socket.resume().write('GET /v1/webhooks HTTP/1.1\r\nX-Slow: ')
      return dripSlowly(socket, 'x', slow.everyMs)
    })
    do await expectOthersServed()
    while (drips.some(({ pieces }) => pieces < slow.bytes) && !sockets.some((socket) => socket.destroyed))
    // None of them has been cut off meanwhile: what was served was served beside all of them.
    expect(sockets.filter((socket) => socket.destroyed)).toEqual([])
  })

  test('others are served beside 200 requests with a key whose bodies do not come: nothing of the database is held', async () => {
    for (const socket of await openMany(200))
      socket.write(head('Content-Length: 1000\r\nIdempotency-Key: same\r\n\r\n{"email"'))
    await expectOthersServed()
  })

  test('others are served beside 10 requests with a key whose bodies never end, and those are refused', async () => {
    const piece = Buffer.from(`1000\r\n${'x'.repeat(0x1000)}\r\n`)
    const answers = (await openMany(10)).map((socket) => {
      socket.write(head('Transfer-Encoding: chunked\r\n\r\n'))
      drip(socket, piece)
      return once(socket, 'data')
    })
    for (const [answer] of await Promise.all(answers)) expect(String(answer)).toMatch(/^HTTP\/1\.1 413 /)
    await expectOthersServed()
  })

  test('others are served beside 10 requests without a key whose bodies never end, and those are refused before a byte of it', async () => {
    const answers = (await openMany(10)).map((socket) => {
      socket.write('POST /v1/subscribers HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
      return once(socket, 'data').then((answer) => {
        drip(socket, Buffer.from(`1000\r\n${'x'.repeat(0x1000)}\r\n`))
        return answer
      })
    })
    for (const [answer] of await Promise.all(answers)) expect(String(answer)).toMatch(/^HTTP\/1\.1 401 /)
    await expectOthersServed()
  })

  test(`others are served beside ${rounds({ short: 20, long: 200 })} clients that ask and do not read`, async () => {
    for (const socket of await openMany(rounds({ short: 20, long: 200 }))) {
      socket.pause()
      for (let request = 0; request < 5; request++) socket.write('GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n')
    }
    await expectOthersServed()
  })
})

const limits = { headersTimeoutMs: 200, requestTimeoutMs: 300, timeoutCheckMs: 20 }

async function serve(others: Partial<typeof limits> = {}) {
  const server = await listen({
    app: (req, res) => void req.resume().on('end', () => res.end()),
    host: '127.0.0.1',
    port: 0,
    logger: createLogger({ level: 'silent' }),
    limits: { ...limits, ...others },
  })
  onTestFinished(() => server.close(0))
  return server.address.port
}

/** Far less than 16 KiB are sent before the time is over, so that it is the time that ends it. */
const dripMs = 10

test.each([
  ['says nothing', '', ''],
  ['sends its head a byte at a time', 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ', 'x'],
  ['sends header after header', 'GET / HTTP/1.1\r\nHost: a\r\n', 'X: y\r\n'],
  ['sends empty lines before a request', '', '\r\n'],
  ['sends a body a byte at a time', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n', 'x'],
  ['sends a body that never ends', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n'],
])('no client that %s is waited for longer than the limits', async (_, beginning, piece) => {
  const socket = await open(await serve())
  const answered = readToEnd(socket)
  if (beginning !== '') socket.write(beginning)
  if (piece !== '') dripSlowly(socket, piece, dripMs)
  // Ends when the server closes the connection; else the test does not.
  expect(await answered).toMatch(/^HTTP\/1\.1 408 /)
})

test.each([
  ['sends a head that never ends', 'GET / HTTP/1.1\r\nHost: a\r\nX-Long: ', 'x'.repeat(0x1000)],
  ['sends headers that never end', 'GET / HTTP/1.1\r\nHost: a\r\n', `X: ${'y'.repeat(0x1000)}\r\n`],
])('a client that %s, as fast as it is taken, is not waited for at all', async (_, beginning, piece) => {
  const socket = await open(await serve({ headersTimeoutMs: 600_000, requestTimeoutMs: 600_000 }))
  const answered = once(socket, 'data')
  socket.write(beginning)
  drip(socket, piece)
  expect(String(await answered)).toMatch(/^HTTP\/1\.1 431 /)
})
