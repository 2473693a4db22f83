import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWakeUps, type WakeUps } from '../../server/background/wake-ups.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

type Listener = AsyncDisposable & WakeUps & { heard: string[] }

/** Hears three channels; resolves once it listens. What it hears then, it hears in the order in which it was sent. */
async function listen(): Promise<Listener> {
  const heard: string[] = []
  const channels = ['work', 'rest', 'end']
  const wakeUps = startWakeUps({
    connectionString: database.connectionString,
    onError: () => undefined,
    on: Object.fromEntries(channels.map((channel) => [channel, () => heard.push(channel)])),
  })
  await expect.poll(() => heard).toEqual(channels)
  heard.length = 0
  return { ...wakeUps, heard, [Symbol.asyncDispose]: wakeUps.stop }
}

test('wake-ups become one message a channel when they come close together', async () => {
  await using one = await listen()
  await using other = await listen()
  for (let count = 0; count < 100; count++) {
    one.notify('work')
    one.notify('rest')
  }
  one.notify('end')
  await expect.poll(() => other.heard).toContain('end')
  expect(other.heard).toEqual(['work', 'rest', 'end'])
  one.notify('work')
  await expect.poll(() => other.heard).toEqual(['work', 'rest', 'end', 'work'])
})

test('wake-ups are heard again after the connection broke, and what was missed is taken for said', async () => {
  await using listener = await listen()
  await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'postern wake-ups'
    `.execute(database.db)
  await expect.poll(() => listener.heard).toEqual(['work', 'rest', 'end'])
  listener.notify('rest')
  await expect.poll(() => listener.heard).toEqual(['work', 'rest', 'end', 'rest'])
})

test('wake-ups leave no connection behind that could not be made to listen', async () => {
  const errors: unknown[] = []
  const wakeUps = startWakeUps({
    connectionString: database.connectionString,
    onError: (error) => errors.push(error),
    // No channel may be called so.
    on: { '': () => undefined },
  })
  await expect.poll(() => errors.length).toBe(1)
  await wakeUps.stop()
})

test('wake-ups tell that the connection is alive, and that it is dead also where it looks alive', async () => {
  const url = new URL(database.connectionString)
  await using proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) })
  url.host = `127.0.0.1:${proxy.port}`
  const told: (number | 'dead')[] = []
  const errors: unknown[] = []
  const wakeUps = startWakeUps({
    connectionString: url.href,
    onError: (error) => errors.push(error),
    on: { work: () => undefined },
    hearing: { hear: (askedAt) => told.push(askedAt), hearNoMore: () => told.push('dead') },
    // So long that a busy machine answers in it.
    aliveMs: 1_000,
  })
  await expect.poll(() => told.length).toBeGreaterThan(2)
  const before = performance.now()
  proxy.stall()
  await expect.poll(() => told.at(-1)).toBe('dead')
  const times = told.filter((time) => time !== 'dead')
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(times.at(-1)).toBeLessThan(before)
  expect(errors[0]).toMatchObject({ message: 'Query read timeout' })
  // Else its end waits for the connection it is making.
  await proxy.cut()
  await wakeUps.stop()
  expect(told.filter((time) => time === 'dead')).toHaveLength(1)
})
