import { createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { answer, type Behaviour, silence, startReceiver } from '../../support/receiver.ts'
import { createTestTimer } from '../../support/timer.ts'
import { post, testExchange } from './exchange-setup.ts'

/** A port of loopback where nothing listens. */
async function closedPort(): Promise<number> {
  const receiver = await startReceiver()
  await receiver.stop()
  return receiver.port
}

const tooManyInterimAnswers = {
  stage: 'while-sending',
  reason: 'invalid-answer',
  message: 'The endpoint’s answer is not valid HTTP: it sent more than 32 interim answers.',
  partialAnswer: null,
}

const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

test('an exchange fails when the connection is refused', async () => {
  const outcome = await post(testExchange(), `http://127.0.0.1:${await closedPort()}/`)
  expect(outcome).toMatchObject({
    kind: 'failed',
    stage: 'before-sending',
    reason: 'connection-refused',
    message: 'The connection was refused. Check that the endpoint runs and listens on the port of the URL.',
  })
})

test.each<[string, Behaviour, object]>([
  [
    'when the endpoint closes the connection without an answer',
    ({ socket }) => socket.destroy(),
    {
      stage: 'while-sending',
      reason: 'connection-lost',
      message: 'The endpoint closed the connection without an answer.',
    },
  ],
  [
    'when the endpoint resets the connection',
    ({ socket }) => socket.resetAndDestroy(),
    { stage: 'while-sending', reason: 'connection-lost' },
  ],
  [
    'when the status line breaks off',
    ({ socket }) => socket.end('HTTP/1.1 20'),
    { stage: 'while-sending', reason: 'connection-lost' },
  ],
  [
    'when only an interim answer came',
    ({ socket }) => socket.end('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'),
    { stage: 'while-sending', reason: 'connection-lost' },
  ],
  [
    'when the body is shorter than its length',
    ({ socket }) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfive.'),
    {
      stage: 'after-sending',
      reason: 'connection-lost',
      message: 'The endpoint closed the connection before its answer was complete.',
      partialAnswer: { status: 200, body: 'five.' },
    },
  ],
  [
    'when a chunked body breaks off',
    ({ socket }) => socket.end(`${chunked}5\r\nfive.\r\n`),
    { stage: 'after-sending', reason: 'connection-lost' },
  ],
  [
    'when the connection is reset in the middle of a body',
    ({ socket }) => socket.write(`${chunked}5\r\nfive.\r\n`, () => socket.resetAndDestroy()),
    { stage: 'after-sending', reason: 'connection-lost' },
  ],
  [
    'when the connection is reset in a body that only its end would end',
    ({ socket }) => socket.write('HTTP/1.1 200 OK\r\n\r\nfive.', () => socket.resetAndDestroy()),
    { stage: 'after-sending', reason: 'connection-lost' },
  ],
  [
    'when the answer is no HTTP',
    ({ socket }) => socket.end('220 mail.example.com ESMTP\r\n'),
    {
      stage: 'while-sending',
      reason: 'invalid-answer',
      message: 'The endpoint’s answer is not valid HTTP: check that the port of the URL speaks HTTP, not HTTPS.',
    },
  ],
  [
    'when a header is no header',
    ({ socket }) => socket.end('HTTP/1.1 200 OK\r\nno header\r\n\r\n'),
    { stage: 'while-sending', reason: 'invalid-answer' },
  ],
  [
    'when the size of a chunk is no number',
    ({ socket }) => socket.end(`${chunked}many\r\nfive.\r\n`),
    {
      stage: 'after-sending',
      reason: 'invalid-answer',
      message: 'The endpoint’s answer is not valid HTTP: its chunked body is not valid.',
      partialAnswer: { status: 200, body: '' },
    },
  ],
  [
    'when the headers are too large',
    answer(200, { headers: { 'x-large': 'x'.repeat(17 * 1024) } }),
    {
      stage: 'while-sending',
      reason: 'invalid-answer',
      message: 'The endpoint’s answer is not valid HTTP: its headers are larger than 16 KiB.',
    },
  ],
  [
    'when the headers never end',
    ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const more = () => {
        if (!socket.destroyed) socket.write(`x-more: ${'x'.repeat(1000)}\r\n`, more)
      }
      more()
    },
    { stage: 'while-sending', reason: 'invalid-answer' },
  ],
  [
    'when the trailers are too large',
    ({ socket }) => socket.end(`${chunked}0\r\nx-large: ${'x'.repeat(17 * 1024)}\r\n\r\n`),
    { stage: 'after-sending', reason: 'invalid-answer' },
  ],
  [
    'when the endpoint changes the protocol',
    ({ socket }) => socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    { stage: 'while-sending', reason: 'invalid-answer' },
  ],
  [
    'when the interim answers before it never end',
    ({ socket }) => socket.write(`HTTP/1.1 100 Continue\r\nx-large: ${'x'.repeat(17 * 1024)}`),
    { stage: 'while-sending', reason: 'invalid-answer' },
  ],
  [
    'when very many interim answers come at once',
    ({ socket }) => socket.write('HTTP/1.1 100\r\n\r\n'.repeat(64 * 1024)),
    tooManyInterimAnswers,
  ],
  ...['100 Continue', '102 Processing', '103 Early Hints'].map((status): [string, Behaviour, object] => [
    `when it goes on with ${status}`,
    ({ socket }) => {
      const more = () => {
        if (!socket.destroyed) socket.write(`HTTP/1.1 ${status}\r\nlink: </x>\r\n\r\n`, more)
      }
      more()
    },
    tooManyInterimAnswers,
  ]),
  [
    'when an interim answer is all there is',
    ({ socket }) => socket.end('HTTP/1.1 100 Continue\r\n\r\n'),
    { stage: 'while-sending', reason: 'connection-lost', partialAnswer: null },
  ],
  ...(
    [
      ['two lengths that are alike', 'content-length: 2\r\ncontent-length: 2', 'it has more than one Content-Length'],
      ['two lengths that differ', 'content-length: 2\r\nContent-Length: 3', 'it has more than one Content-Length'],
      ['two lengths of 0', 'content-length: 0\r\ncontent-length: 0', 'it has more than one Content-Length'],
      [
        'a length and chunks',
        'content-length: 2\r\ntransfer-encoding: chunked',
        'it has both Content-Length and Transfer-Encoding',
      ],
      [
        'chunks and a length',
        'transfer-encoding: chunked\r\ncontent-length: 2',
        'it has both Content-Length and Transfer-Encoding',
      ],
      ['a length that is no number', 'content-length: two', 'its Content-Length is not a number'],
      ['a malformed header behind a length', 'content-length: 2\r\nno header', 'one of its headers is malformed'],
    ] as const
  ).map(([what, headers, fault]): [string, Behaviour, object] => [
    `when the answer has ${what}`,
    ({ socket }) => socket.end(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\nok`),
    {
      stage: 'while-sending',
      reason: 'invalid-answer',
      message: `The endpoint’s answer is not valid HTTP: ${fault}.`,
      partialAnswer: { status: 200, body: '' },
    },
  ]),
])('an exchange fails: %s', async (_name, behaviour, failure) => {
  await using receiver = await startReceiver()
  receiver.respond(behaviour)
  expect(await post(testExchange(), receiver.url)).toMatchObject({ kind: 'failed', ...failure })
  await receiver.disconnected(1)
  expect(receiver.requests).toHaveLength(1)
})

describe('an exchange has 30 seconds', () => {
  test('an answer after 29 of 30 seconds counts', async () => {
    await using receiver = await startReceiver()
    const timer = createTestTimer()
    const asked = Promise.withResolvers<() => void>()
    receiver.respond((exchange) => asked.resolve(() => answer(200, { body: 'late' })(exchange)))
    const outcome = post(testExchange({ startTimer: timer.startTimer }), receiver.url)
    const respond = await asked.promise
    timer.advance(29_000)
    respond()
    expect(await outcome).toMatchObject({ kind: 'answered', status: 200, body: 'late' })
    expect(timer.waiting).toBe(0)
  })

  test('an answer after 31 seconds comes too late', async () => {
    await using receiver = await startReceiver()
    const timer = createTestTimer()
    receiver.respond(silence)
    const outcome = post(testExchange({ startTimer: timer.startTimer }), receiver.url)
    await receiver.received(1)
    timer.advance(30_000)
    expect(await outcome).toMatchObject({
      kind: 'failed',
      stage: 'while-sending',
      reason: 'timed-out',
      message: 'Timed out after 30 seconds: no answer from the endpoint. Answer first, then do the work.',
    })
    await receiver.disconnected(1)
  })

  test('an exchange ends after 30 seconds though a byte of the answer comes every second', async () => {
    await using receiver = await startReceiver()
    const timer = createTestTimer()
    let dripped = 0
    receiver.respond(({ response }) => {
      response.writeHead(200)
      const drip = () => {
        dripped += 1
        timer.advance(1_000)
        if (!response.destroyed) response.write('.', () => setImmediate(drip))
      }
      drip()
    })
    const outcome = await post(testExchange({ startTimer: timer.startTimer }), receiver.url)
    expect(outcome).toMatchObject({
      kind: 'failed',
      stage: 'after-sending',
      reason: 'timed-out',
      message: 'Timed out after 30 seconds: the endpoint did not finish its answer. Answer with a short body, or none.',
      partialAnswer: { status: 200, body: expect.stringMatching(/^\.+$/) },
    })
    expect(dripped).toBeGreaterThanOrEqual(30)
    await receiver.disconnected(1)
  })

  test('an exchange ends after 30 seconds while its host name is resolved', async () => {
    const timer = createTestTimer()
    const asked = Promise.withResolvers<string>()
    const exchange = testExchange({
      startTimer: timer.startTimer,
      resolve: (hostname) => {
        asked.resolve(hostname)
        return new Promise(() => undefined)
      },
    })
    const outcome = post(exchange, 'http://hook.test/')
    expect(await asked.promise).toBe('hook.test')
    timer.advance(30_000)
    expect(await outcome).toMatchObject({
      stage: 'before-sending',
      reason: 'timed-out',
      message: 'Timed out after 30 seconds: no connection to the endpoint. Check its DNS and its firewall.',
    })
  })

  test('an exchange ends after 30 seconds in the TLS handshake, and drops the connection', async () => {
    const timer = createTestTimer()
    const accepted = Promise.withResolvers<void>()
    const dropped = Promise.withResolvers<void>()
    const server = createServer((socket) => {
      socket.on('data', () => accepted.resolve())
      socket.on('error', () => undefined)
      socket.on('close', () => dropped.resolve())
    })
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => {
        const address = server.address()
        resolve(typeof address === 'object' && address !== null ? address.port : 0)
      })
    })
    const outcome = post(testExchange({ startTimer: timer.startTimer }), `https://127.0.0.1:${port}/`)
    await accepted.promise
    timer.advance(30_000)
    expect(await outcome).toMatchObject({ stage: 'before-sending', reason: 'timed-out' })
    await dropped.promise
    await new Promise((resolve) => server.close(resolve))
  })

  test('an exchange measures its 30 seconds by a clock of its own when none is handed in', async () => {
    await using receiver = await startReceiver()
    receiver.respond(silence)
    const outcome = await post(testExchange({ timeoutMs: 100 }), receiver.url)
    expect(outcome).toMatchObject({
      reason: 'timed-out',
      message: expect.stringMatching(/^Timed out after 0.1 seconds/),
    })
    expect(outcome.durationMs).toBeGreaterThanOrEqual(95)
  })
})
