import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { certificate, testAuthority } from '../../support/certificates.ts'
import { answer, type Behaviour, silence, startReceiver } from '../../support/receiver.ts'
import { createTestTimer } from '../../support/timer.ts'
import { post, testExchange } from './exchange-setup.ts'

/** Moves the monotonic clock of this process until the test ends. */
function letPass(ms: number): void {
  const real = performance.now.bind(performance)
  const moved = vi.spyOn(performance, 'now').mockImplementation(() => real() + ms)
  onTestFinished(() => moved.mockRestore())
}

test('a connection is kept for the next exchange', async () => {
  await using receiver = await startReceiver()
  const exchange = testExchange()
  for (let i = 0; i < 5; i++) await post(exchange, receiver.url)
  expect(receiver.connections).toBe(1)
})

test('a connection is kept only up to a number for one endpoint', async () => {
  await using receiver = await startReceiver()
  const exchange = testExchange({ connectionsPerOrigin: 2 })
  await Promise.all([1, 2, 3, 4, 5].map(() => post(exchange, receiver.url)))
  await receiver.disconnected(3)
  expect(receiver.connections).toBe(5)
  await Promise.all([1, 2].map(() => post(exchange, receiver.url)))
  expect(receiver.connections).toBe(5)
})

test('a connection goes first of all that are kept when there are too many and it was idle for longest', async () => {
  await using one = await startReceiver()
  await using other = await startReceiver()
  await using third = await startReceiver()
  const exchange = testExchange({ connectionsInAll: 2 })
  for (const receiver of [one, other, third]) await post(exchange, receiver.url)
  await one.disconnected(1)
  for (const receiver of [other, third]) await post(exchange, receiver.url)
  expect([other.connections, third.connections]).toEqual([1, 1])
})

test('a connection is used for a minute at most, so that a name that moves is followed', async () => {
  await using receiver = await startReceiver()
  const exchange = testExchange()
  await post(exchange, receiver.url)
  letPass(61_000)
  await post(exchange, receiver.url)
  expect(receiver.connections).toBe(1)
  await post(exchange, receiver.url)
  expect(receiver.connections).toBe(2)
})

test('a connection is shared by no two endpoints', async () => {
  await using one = await startReceiver()
  await using other = await startReceiver()
  const exchange = testExchange()
  await post(exchange, one.url)
  await post(exchange, other.url)
  await post(exchange, one.url)
  expect([one.connections, other.connections]).toEqual([1, 1])
  expect([one.requests.length, other.requests.length]).toEqual([2, 1])
})

test('a connection that the endpoint closes after its answer is not used again', async () => {
  await using receiver = await startReceiver()
  receiver.respond(answer(200, { headers: { connection: 'close' } }))
  const exchange = testExchange()
  for (let i = 0; i < 3; i++) expect(await post(exchange, receiver.url)).toMatchObject({ status: 200 })
  expect(receiver.connections).toBe(3)
  expect(receiver.requests).toHaveLength(3)
})

test('a connection that the endpoint closes while it is idle is not used again', async () => {
  await using receiver = await startReceiver()
  const exchange = testExchange()
  receiver.respondOnce(({ response, socket }) => {
    response.end('taken', () => socket.end())
  })
  await post(exchange, receiver.url)
  await receiver.disconnected(1)
  expect(await post(exchange, receiver.url)).toMatchObject({ status: 200 })
  expect(receiver.requests).toHaveLength(2)
})

test('a connection is closed with the exchange', async () => {
  await using receiver = await startReceiver()
  const exchange = testExchange()
  await post(exchange, receiver.url)
  await exchange.close()
  await receiver.disconnected(1)
})

test('a kept connection that is reset as it is used again is no failure of the endpoint', async () => {
  await using receiver = await startReceiver()
  const exchange = testExchange()
  await post(exchange, receiver.url)
  receiver.respondOnce(({ socket }) => socket.resetAndDestroy())
  expect(await post(exchange, receiver.url)).toMatchObject({ kind: 'answered', status: 200 })
  expect(receiver.requests).toHaveLength(3)
})

describe.each([
  ['HTTP', false],
  ['HTTPS', true],
])('a kept connection that closes as it is used again, over %s,', (_name, secure) => {
  const start = () => startReceiver(secure ? { tls: certificate('valid') } : {})
  const ca = testAuthority()
  const close: Behaviour = ({ socket }) => socket.destroy()

  test('a kept connection that closes as it is used again is no failure of the endpoint: the request is sent on a new one', async () => {
    await using receiver = await start()
    const exchange = testExchange({ ca })
    await post(exchange, receiver.url)
    receiver.respondOnce(close)
    expect(await post(exchange, receiver.url)).toMatchObject({ kind: 'answered', status: 200, reposted: true })
    expect(await post(exchange, receiver.url)).toMatchObject({ kind: 'answered', status: 200, reposted: false })
    expect(receiver.requests).toHaveLength(4)
    expect(receiver.connections).toBe(2)
    expect(receiver.requests[2]).toEqual(receiver.requests[1])
  })

  test('a kept connection that closes as it is used again is no reason for a third request', async () => {
    await using receiver = await start()
    const exchange = testExchange({ ca })
    // Two kept connections: the second request must not try the other one.
    const held = Promise.withResolvers<() => void>()
    receiver.respondOnce((first) => held.resolve(() => answer(200)(first)))
    const first = post(exchange, receiver.url)
    const release = await held.promise
    await post(exchange, receiver.url)
    release()
    await first
    expect(receiver.connections).toBe(2)

    receiver.respond(close)
    const lost = { stage: 'while-sending', reason: 'connection-lost', reposted: true }
    expect(await post(exchange, receiver.url)).toMatchObject(lost)
    expect(receiver.requests).toHaveLength(4)
    expect(receiver.connections).toBe(3)
  })

  test('a kept connection that closes as it is used again is a failure when an answer had begun', async () => {
    await using receiver = await start()
    const exchange = testExchange({ ca })
    await post(exchange, receiver.url)
    receiver.respondOnce(({ socket }) => socket.end('HTTP/1.1 2'))
    expect(await post(exchange, receiver.url)).toMatchObject({ stage: 'while-sending', reason: 'connection-lost' })
    expect(receiver.requests).toHaveLength(2)
  })

  test('a kept connection that closes as it is used again is a failure when the endpoint took its time before', async () => {
    await using receiver = await start()
    const exchange = testExchange({ ca })
    await post(exchange, receiver.url)
    receiver.respondOnce((arrived) => {
      letPass(1_001)
      close(arrived)
    })
    expect(await post(exchange, receiver.url)).toMatchObject({ stage: 'while-sending', reason: 'connection-lost' })
    expect(receiver.requests).toHaveLength(2)
  })

  test('a kept connection that closes as it is used again is a failure on the first use of the connection that replaced one announced to close', async () => {
    await using receiver = await start()
    const exchange = testExchange({ ca })
    receiver.respondOnce(answer(200, { headers: { connection: 'close' } }), close)
    await post(exchange, receiver.url)
    expect(await post(exchange, receiver.url)).toMatchObject({ reason: 'connection-lost' })
    expect(receiver.requests).toHaveLength(2)
  })

  test('a kept connection that closes as it is used again is a failure on the first use', async () => {
    await using receiver = await start()
    receiver.respond(close)
    expect(await post(testExchange({ ca }), receiver.url)).toMatchObject({ reason: 'connection-lost' })
    expect(receiver.requests).toHaveLength(1)
  })

  test('a kept connection that closes as it is used again gives the second request no time of its own', async () => {
    await using receiver = await start()
    const timer = createTestTimer()
    const exchange = testExchange({ ca, startTimer: timer.startTimer })
    await post(exchange, receiver.url)
    receiver.respondOnce(close, silence)
    const outcome = post(exchange, receiver.url)
    await receiver.received(3)
    timer.advance(30_000)
    expect(await outcome).toMatchObject({ reason: 'timed-out' })
    expect(timer.started).toBe(2)
    await receiver.disconnected(2)
  })
})
