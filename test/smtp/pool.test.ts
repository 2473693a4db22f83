import { expect, test } from 'vitest'
import type { TransportConfig } from '../../server/smtp/create-transport.ts'
import { allowedConnections, slowedPace } from '../../server/smtp/host-connection-limit.ts'
import { createTestTime } from '../support/clock.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import { createTestTimer } from '../support/timer.ts'
import { config, conversation, relayTo } from './smtp-setup.ts'

const never = new AbortController().signal

/** Has a server keep all messages waiting; answers how to let them go on. */
function gateOf(server: ScriptedSmtp): () => void {
  const gate = Promise.withResolvers<void>()
  server.at('message', async () => {
    await gate.promise
    return undefined
  })
  return gate.resolve
}

function limited(changes: Partial<TransportConfig>): TransportConfig {
  return { ...config, ...changes }
}

test('connections are used again, and closed when so many messages went over one', async () => {
  await using server = await startScriptedSmtp()
  const transport = relayTo(server, { config: limited({ messagesPerConnection: 3 }) })
  for (let count = 0; count < 7; count += 1) await transport.send(conversation(), never)
  await transport.close()

  expect(server.messages.map(({ connection }) => connection)).toEqual([0, 0, 0, 1, 1, 1, 2])
  expect(server.commands.filter(({ line }) => line === 'QUIT')).toHaveLength(3)
  expect(server.commands.filter(({ line }) => line === 'RSET')).toEqual([])
})

test('connections are as many at once as a host may have, and who comes later waits', async () => {
  await using server = await startScriptedSmtp()
  const open = gateOf(server)
  const transport = relayTo(server, { config: limited({ connectionsPerHost: 3 }) })
  const sending = Array.from({ length: 8 }, () => transport.send(conversation(), never))
  await server.reached('message', 3)
  open()
  const outcomes = (await Promise.all(sending)).flat()
  await transport.close()

  expect(outcomes.map(({ kind }) => kind)).toEqual(Array(8).fill('accepted'))
  expect(server.mostOpen).toBe(3)
  expect(server.connections).toBe(3)
})

test('connections are as many in all as the process may have', async () => {
  await using server = await startScriptedSmtp()
  const open = gateOf(server)
  const transport = relayTo(server, { config: limited({ concurrency: 2 }) })
  const sending = Array.from({ length: 4 }, () => transport.send(conversation(), never))
  await server.reached('message', 2)
  open()
  await Promise.all(sending)
  await transport.close()

  expect(server.mostOpen).toBe(2)
  expect(server.messages).toHaveLength(4)
})

test('connections that nobody uses for ten seconds are closed', async () => {
  await using server = await startScriptedSmtp()
  const timer = createTestTimer()
  const transport = relayTo(server, { startTimer: timer.startTimer })
  await transport.send(conversation(), never)
  timer.advance(9_999)
  await transport.send(conversation(), never)
  expect(server.connections).toBe(1)
  timer.advance(10_000)
  await server.reached('quit')
  await transport.send(conversation(), never)
  await transport.close()

  expect(server.messages.map(({ connection }) => connection)).toEqual([0, 0, 1])
})

test('connections that the server has closed meanwhile cost no message', async () => {
  await using server = await startScriptedSmtp()
  const transport = relayTo(server)
  await transport.send(conversation(), never)
  server.dropAll()

  expect(await transport.send(conversation(), never)).toMatchObject([{ kind: 'accepted' }])
  expect(server.messages.map(({ connection }) => connection)).toEqual([0, 1])
  await transport.close()
})

test('connections that the server says something on, unasked, are closed at once', async () => {
  await using server = await startScriptedSmtp()
  const transport = relayTo(server, { startTimer: createTestTimer().startTimer })
  await transport.send(conversation(), never)
  server.say('421 4.4.2 Idle for too long')
  await server.reached('quit')

  expect(await transport.send(conversation(), never)).toMatchObject([{ kind: 'accepted' }])
  expect(server.messages.map(({ connection }) => connection)).toEqual([0, 1])
  await transport.close()
})

test.each(['drop', 'reset'] as const)(
  'connections that the server ends at the next message (%s) cost none',
  async (next) => {
    await using server = await startScriptedSmtp()
    const transport = relayTo(server)
    server.at('mail', ({ count }) => (count === 1 ? { reply: '421 4.7.0 Enough of this one', next } : undefined))
    await transport.send(conversation(), never)

    expect(await transport.send(conversation(), never)).toMatchObject([{ kind: 'accepted' }])
    expect(server.messages.map(({ connection }) => connection)).toEqual([0, 1])
    // It asked for another connection, not for fewer.
    expect(transport.roomFor('relay', 'single')).toBe(2 * config.connectionsPerHost)
    await transport.close()
  },
)

test('connections are asked for once more only', async () => {
  await using server = await startScriptedSmtp()
  const transport = relayTo(server)
  await transport.send(conversation(), never)
  server.at('mail', { next: 'drop' })

  expect(await transport.send(conversation(), never)).toMatchObject([{ kind: 'deferred', unknown: false }])
  expect(server.connections).toBe(2)
  await transport.close()
})

test('connections are all taken leave of at the end', async () => {
  await using server = await startScriptedSmtp()
  const transport = relayTo(server)
  await Promise.all(Array.from({ length: 5 }, () => transport.send(conversation(), never)))
  const { connections } = server
  await transport.close()

  expect(server.commands.filter(({ line }) => line === 'QUIT')).toHaveLength(connections)
  expect(await transport.send(conversation(), never)).toMatchObject([{ kind: 'deferred' }])
  expect(server.connections).toBe(connections)
})

test('who waits for a connection when the transport is closed is told so', async () => {
  await using server = await startScriptedSmtp()
  const open = gateOf(server)
  const transport = relayTo(server, { config: limited({ connectionsPerHost: 1 }) })
  const sending = [transport.send(conversation(), never), transport.send(conversation(), never)]
  await server.reached('message')
  await transport.close()

  expect(await sending[1]).toMatchObject([{ kind: 'deferred', unknown: false }])
  open()
  expect(await sending[0]).toMatchObject([{ kind: 'accepted' }])
  expect(server.connections).toBe(1)
})

test('a host that asks for less is given half as many connections, and one more each minute', async () => {
  await using server = await startScriptedSmtp()
  const time = createTestTime()
  const transport = relayTo(server, { clock: time.clock, config: limited({ connectionsPerHost: 4 }) })
  server.at('message', '451 4.7.1 Too many messages, slow down')
  expect(await transport.send(conversation(), never)).toMatchObject([{ kind: 'deferred', congested: true }])

  const rooms: number[] = []
  for (let minute = 0; minute < 4; minute += 1) {
    rooms.push(transport.roomFor('relay', 'single'))
    await time.advance(60_000)
  }
  expect(rooms).toEqual([4, 6, 8, 8])
  await transport.close()
})

test('a host that asks for less is talked to over one connection in the end, not over none', async () => {
  await using server = await startScriptedSmtp()
  const time = createTestTime()
  const transport = relayTo(server, { clock: time.clock, config: limited({ connectionsPerHost: 4 }) })
  server.at('mail', '421 4.7.0 Too many connections')
  for (let count = 0; count < 5; count += 1) {
    await time.advance(1)
    await transport.send(conversation(), never)
  }
  expect(transport.roomFor('relay', 'single')).toBe(2)

  server.at('mail', () => undefined)
  const { connections } = server
  await Promise.all(Array.from({ length: 4 }, () => transport.send(conversation(), never)))
  await transport.close()
  expect(server.connections).toBe(connections + 1)
  expect(server.messages).toHaveLength(4)
})

test('a host that asks for less is given half as many when it lets nobody in', async () => {
  await using server = await startScriptedSmtp()
  const time = createTestTime()
  const transport = relayTo(server, { clock: time.clock, config: limited({ connectionsPerHost: 4 }) })
  server.at('connect', ({ count }) => (count === 0 ? '421 4.3.2 Too many connections' : undefined))
  await transport.send(conversation(), never)
  await time.advance(1_000)
  await transport.send(conversation(), never)
  expect(transport.roomFor('relay', 'single')).toBe(4)
  await transport.close()
})

test('a host that asks for less is slowed once by what was begun together', () => {
  const now = (seconds: number) => new Date(seconds * 1000)
  const first = slowedPace(null, { max: 8, begunAt: now(0), now: now(10) })
  const second = slowedPace(first, { max: 8, begunAt: now(5), now: now(11) })
  const third = slowedPace(second, { max: 8, begunAt: now(12), now: now(13) })

  expect([first, second, third].map(({ connections }) => connections)).toEqual([4, 4, 2])
  expect(allowedConnections(third, 8, now(13))).toBe(2)
  expect(allowedConnections(third, 8, now(13 + 60 * 6))).toBe(8)
  expect(allowedConnections(third, 8, now(13 + 60 * 600))).toBe(8)
})

test('a host that cannot be reached is tried over one connection, until it is back', async () => {
  const gone = await startScriptedSmtp()
  const time = createTestTime()
  const transport = relayTo(gone, { clock: time.clock, config: limited({ connectionsPerHost: 4 }) })
  await gone.stop()
  expect(transport.roomFor('relay', 'single')).toBe(8)
  // Twice as long each time, up to 15 seconds.
  for (const seconds of [1, 2, 4, 8, 15, 15]) {
    await transport.send(conversation(), never)
    expect(transport.roomFor('relay', 'single')).toBe(0)
    await time.advance(seconds * 1_000 - 1)
    expect(transport.roomFor('relay', 'single')).toBe(0)
    await time.advance(1)
    expect(transport.roomFor('relay', 'single')).toBe(1)
  }

  await using back = await startScriptedSmtp({ port: gone.port })
  await transport.send(conversation(), never)
  expect(transport.roomFor('relay', 'single')).toBe(8)
  expect(back.messages).toHaveLength(1)
  await transport.close()
})

test('the room is twice as many as run at once, less what was begun, and none beyond it', async () => {
  await using server = await startScriptedSmtp()
  const open = gateOf(server)
  const transport = relayTo(server, { config: limited({ connectionsPerHost: 2 }) })
  expect(transport.roomFor('relay', 'single')).toBe(4)
  const sending = [1, 2, 3].map(() => transport.send(conversation(), never))
  expect(transport.roomFor('relay', 'single')).toBe(1)
  sending.push(transport.send(conversation(), never), transport.send(conversation(), never))
  expect(transport.roomFor('relay', 'single')).toBe(0)
  open()
  await Promise.all(sending)
  await transport.close()
})

test('the room grows with what a host does in a second', async () => {
  await using server = await startScriptedSmtp()
  const time = createTestTime(new Date('2026-01-01T00:00:00Z'))
  const transport = relayTo(server, { clock: time.clock, config: limited({ connectionsPerHost: 1 }) })
  for (let count = 0; count < 20; count += 1) await transport.send(conversation(), never)
  expect(transport.roomFor('relay', 'single')).toBe(20)
  await time.advance(1_000)
  expect(transport.roomFor('relay', 'single')).toBe(20)
  await time.advance(1_000)
  expect(transport.roomFor('relay', 'single')).toBe(2)
  await transport.close()
})

test('the room is bounded in all, and who begins more than that waits', async () => {
  await using server = await startScriptedSmtp()
  const open = gateOf(server)
  const transport = relayTo(server, { config: limited({ concurrency: 1, connectionsPerHost: 1 }) })
  const sending = Array.from({ length: 9 }, () => transport.send(conversation(), never))
  expect([transport.room('single'), transport.roomFor('relay', 'single')]).toEqual([0, 0])
  open()
  expect((await Promise.all(sending)).flat().map(({ kind }) => kind)).toEqual(Array(9).fill('accepted'))
  await transport.close()
})
