import { getEventListeners } from 'node:events'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { certificate, testAuthority } from '../../support/certificates.ts'
import { answer, type Behaviour, silence, startReceiver } from '../../support/receiver.ts'
import { now, post, testExchange } from './exchange-setup.ts'

test('an exchange posts the body byte for byte with the headers handed in, and brings back the answer', async () => {
  await using receiver = await startReceiver()
  receiver.respond(answer(201, { body: 'taken' }))
  const body = '{"text":"grüße \\u0000 🙂 ","spaces":  1}\n'
  const outcome = await testExchange().send({
    url: `${receiver.url}?tenant=1&next=%2Fa%20b`,
    headers: { 'content-type': 'application/json', 'webhook-id': 'evt_1' },
    body,
  })

  expect(outcome).toEqual({
    kind: 'answered',
    startedAt: now,
    reposted: false,
    durationMs: expect.any(Number),
    status: 201,
    body: 'taken',
    retryAfterSeconds: null,
  })
  expect(outcome.durationMs).toBeGreaterThan(0)
  const [request] = receiver.requests
  expect(request).toMatchObject({ method: 'POST', url: '/hooks?tenant=1&next=%2Fa%20b' })
  expect(request?.body).toEqual(Buffer.from(body))
  expect(request?.headers).toEqual({
    host: `127.0.0.1:${receiver.port}`,
    connection: 'keep-alive',
    'content-type': 'application/json',
    'webhook-id': 'evt_1',
    'accept-encoding': 'identity',
    'content-length': String(Buffer.byteLength(body)),
  })
})

test.each([200, 204, 301, 302, 303, 304, 307, 308, 400, 410, 429, 500, 503])(
  'an exchange takes %i for an answer',
  async (status) => {
    await using receiver = await startReceiver()
    receiver.respond(answer(status, { headers: { location: '/elsewhere' } }))
    expect(await post(testExchange(), receiver.url)).toMatchObject({ kind: 'answered', status })
    expect(receiver.requests.map(({ url }) => url)).toEqual(['/hooks'])
  },
)

test.each([
  ['120', 120],
  ['Sun, 01 Mar 2026 09:31:00 GMT', 60],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 0],
  ['soon', null],
])('an exchange reads Retry-After: %s', async (header, retryAfterSeconds) => {
  await using receiver = await startReceiver()
  receiver.respond(answer(429, { headers: { 'retry-after': header } }))
  expect(await post(testExchange(), receiver.url)).toMatchObject({ status: 429, retryAfterSeconds })
})

test('an exchange passes over interim answers', async () => {
  await using receiver = await startReceiver()
  receiver.respond(({ response }) => {
    response.writeProcessing()
    response.writeEarlyHints({ link: '</style.css>; rel=preload', 'retry-after': '60' })
    response.end('done')
  })
  expect(await post(testExchange(), receiver.url)).toMatchObject({
    status: 200,
    body: 'done',
    retryAfterSeconds: null,
  })
})

test('an exchange waits for no other to the same endpoint', async () => {
  await using receiver = await startReceiver()
  receiver.respond(silence)
  const exchange = testExchange({ connectionsPerOrigin: 1 })
  const giveUp = new AbortController()
  const outcomes = [1, 2, 3, 4, 5].map(() => post(exchange, receiver.url, giveUp.signal))
  await receiver.received(5)
  giveUp.abort()
  await Promise.all(outcomes)
  expect(getEventListeners(giveUp.signal, 'abort')).toEqual([])
})

test('an exchange that is broken off says so, and drops its connection', async () => {
  await using receiver = await startReceiver()
  receiver.respond(silence)
  const giveUp = new AbortController()
  const outcome = post(testExchange(), receiver.url, giveUp.signal)
  await receiver.received(1)
  giveUp.abort()
  expect(await outcome).toMatchObject({ kind: 'failed', stage: 'while-sending', reason: 'connection-lost' })
  await receiver.disconnected(1)
})

test('an exchange with a signal that is aborted already sends nothing', async () => {
  await using receiver = await startReceiver()
  const outcome = await post(testExchange(), receiver.url, AbortSignal.abort())
  expect(outcome).toMatchObject({ kind: 'failed', stage: 'before-sending', reason: 'connection-lost' })
  expect(receiver.requests).toEqual([])
})

test('an exchange under way fails as broken off when all are closed', async () => {
  await using receiver = await startReceiver()
  receiver.respond(silence)
  const exchange = testExchange()
  const outcome = post(exchange, receiver.url)
  await receiver.received(1)
  await exchange.close()
  expect(await outcome).toMatchObject({ reason: 'connection-lost', message: expect.stringContaining('broken off') })
})

const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))

test.each<[string, Behaviour, string]>([
  ['is kept up to 4 KiB', answer(200, { body: 'x'.repeat(5000) }), 'x'.repeat(4096)],
  ['is kept up to 4 KiB, however it comes', inPieces('x'.repeat(50), 100), 'x'.repeat(4096)],
  ['is cut between characters', answer(200, { body: `a${'é'.repeat(3000)}` }), `a${'é'.repeat(2047)}`],
  ['is whole when it has just 4 KiB', answer(200, { body: 'é'.repeat(2048) }), 'é'.repeat(2048)],
  ['may be empty', answer(200), ''],
  ['shows U+FFFD for invalid UTF-8', answer(200, { body: Buffer.from([0x61, 0xff, 0xc3, 0x28, 0xe2, 0x82]) }), 'a��(�'],
  ['shows U+FFFD for U+0000', answer(200, { body: 'a\0b' }), 'a�b'],
  ['is unpacked from gzip', encoded('gzip', gzipSync('packed')), 'packed'],
  ['is unpacked from deflate', encoded('deflate', deflateSync('packed')), 'packed'],
  ['is unpacked from br', encoded('BR', brotliCompressSync('packed')), 'packed'],
  ['stays as it is in a coding nobody knows', encoded('rot13', Buffer.from('cnpxrq')), 'cnpxrq'],
  ['does not count when its gzip is none', encoded('gzip', Buffer.from('packed')), ''],
  ['is shown as far as its gzip goes', encoded('gzip', gzipSync('x'.repeat(100)).subarray(0, -9)), 'x'.repeat(100)],
])('the body of an answer: %s', async (_name, behaviour, body) => {
  await using receiver = await startReceiver()
  receiver.respond(behaviour)
  expect(await post(testExchange(), receiver.url)).toMatchObject({ kind: 'answered', status: 200, body })
})

test.each([
  ['', 'x'.repeat(4096)],
  ['gzip', ''],
])(
  'the body of an answer of 1 GiB is read for 64 KiB, and the connection dropped; coding: "%s"',
  async (coding, body) => {
    await using receiver = await startReceiver()
    const chunk = Buffer.alloc(64 * 1024, 'x')
    let written = 0
    receiver.respond(({ response }) => {
      response.writeHead(200, { 'content-length': 2 ** 30, 'content-encoding': coding })
      const write = () => {
        while (written < 2 ** 30 && !response.destroyed) {
          written += chunk.length
          if (!response.write(chunk)) return
        }
      }
      response.on('drain', write)
      write()
    })
    expect(await post(testExchange(), receiver.url)).toMatchObject({ status: 200, body })
    await receiver.disconnected(1)
    // At most the bytes in the buffers of both sides when the connection was dropped.
    expect(written).toBeLessThan(32 * 1024 * 1024)
  },
)

test('the body of an answer that unpacks to 64 KiB ends there, though more may follow, and the connection is dropped', async () => {
  await using receiver = await startReceiver()
  receiver.respond(({ response }) => {
    response.writeHead(200, { 'content-encoding': 'gzip' })
    response.write(bomb.subarray(0, 1024))
  })
  expect(await post(testExchange(), receiver.url)).toMatchObject({ status: 200, body: '�'.repeat(4096) })
  await receiver.disconnected(1)
})

test('the body of an answer that is a whole gzip bomb is an answer', async () => {
  await using receiver = await startReceiver()
  receiver.respond(encoded('gzip', bomb))
  expect(await post(testExchange(), receiver.url)).toMatchObject({ status: 200, body: '�'.repeat(4096) })
})

test('the body of an answer that ends with the connection is complete', async () => {
  await using receiver = await startReceiver()
  receiver.respond(({ socket }) => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it'))
  expect(await post(testExchange(), receiver.url)).toMatchObject({ status: 200, body: 'all of it' })
})

function encoded(coding: string, body: Buffer): Behaviour {
  return answer(200, { headers: { 'content-encoding': coding }, body })
}

function inPieces(piece: string, count: number): Behaviour {
  return ({ response }) => {
    for (let i = 0; i < count; i++) response.write(piece)
    response.end()
  }
}

describe('an interim answer is passed over (RFC 9110 §15.2)', () => {
  const final = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
  const continued = 'HTTP/1.1 100 Continue\r\n\r\n'

  test.each<[string, string]>([
    ['100 Continue', `${continued}${final}`],
    ['100 without a reason', `HTTP/1.1 100\r\n\r\n${final}`],
    ['100 of HTTP/1.0', `HTTP/1.0 100 Continue\r\n\r\n${final}`],
    ['100 with headers', `HTTP/1.1 100 Continue\r\ndate: now\r\ncontent-length: 0\r\n\r\n${final}`],
    ['several of them', `${continued}${continued}HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${final}`],
    ['102 Processing', `HTTP/1.1 102 Processing\r\n\r\n${final}`],
    ['100 behind 103', `HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${continued}${final}`],
    ['32 of them', `${continued.repeat(32)}${final}`],
  ])('an interim answer is passed over, whole and byte by byte: %s', async (_name, bytes) => {
    for (const pieceLength of [bytes.length, 1, 7]) {
      await using receiver = await startReceiver()
      receiver.respond(({ socket }) => {
        socket.setNoDelay(true)
        let sent = 0
        const next = () => {
          if (sent >= bytes.length) return
          const piece = bytes.slice(sent, sent + pieceLength)
          sent += pieceLength
          socket.write(piece, () => setImmediate(next))
        }
        next()
      })
      const exchange = testExchange()
      for (let i = 0; i < 2; i++) {
        expect(await post(exchange, receiver.url)).toMatchObject({ kind: 'answered', status: 200, body: 'ok' })
      }
      expect(receiver.connections).toBe(1)
    }
  })

  test('bytes like an interim answer are kept in a body', async () => {
    await using receiver = await startReceiver()
    receiver.respond(answer(200, { body: `${continued}and more` }))
    expect(await post(testExchange(), receiver.url)).toMatchObject({ status: 200, body: `${continued}and more` })
  })

  test('an interim answer is passed over in TLS', async () => {
    await using receiver = await startReceiver({ tls: certificate('valid') })
    receiver.respond(({ socket }) => socket.write(`${continued}${final}`))
    const exchange = testExchange({ ca: testAuthority() })
    for (let i = 0; i < 2; i++) expect(await post(exchange, receiver.url)).toMatchObject({ status: 200, body: 'ok' })
    expect(receiver.connections).toBe(1)
  })
})
