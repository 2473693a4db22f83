import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startWakeUps, type WakeUps } from '../server/wake-ups.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'

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

describe('wake-ups', () => {
  it('become one message a channel when they come close together', async () => {
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

  it('are heard again after the connection broke, and what was missed is taken for said', async () => {
    await using listener = await listen()
    await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'postern wake-ups'
    `.execute(database.db)
    await expect.poll(() => listener.heard).toEqual(['work', 'rest', 'end'])
    listener.notify('rest')
    await expect.poll(() => listener.heard).toEqual(['work', 'rest', 'end', 'rest'])
  })

  it('leave no connection behind that could not be made to listen', async () => {
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
})
