import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { applicationName } from './database/connection.ts'
import { sessionGuards, socketGuards } from './database/session-guards.ts'
import { startLoop } from './loop.ts'

/** Messages between the processes of the service, over NOTIFY. Speed only: all of them may be lost. */
export type WakeUps = {
  /**
   * Tells the other processes, at once when nothing was told just now; calls close together become one
   * NOTIFY. It is outside any transaction: a NOTIFY inside one would have all commits wait for each other.
   */
  notify(channel: string): void
  stop(): Promise<void>
}

export type WakeUpOptions = {
  connectionString: string
  /** What to do on a message, by channel. */
  on: Record<string, (payload: string) => void>
  onError: (error: unknown) => void
}

/** Between one NOTIFY and the next. Milliseconds. */
const restMs = 5
const reconnectMs = 1_000
const connectTimeoutMs = 5_000
/** A NOTIFY that takes longer shows that the connection is dead. */
const notifyTimeoutMs = 5_000

export function startWakeUps({ connectionString, on, onError }: WakeUpOptions): WakeUps {
  const pending = new Set<string>()
  let client: pg.Client | undefined
  let telling: Promise<void> | undefined
  let stopping = false

  async function connect(): Promise<void> {
    const next = new pg.Client({
      connectionString,
      application_name: `${applicationName} wake-ups`,
      ...socketGuards,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: notifyTimeoutMs,
    })
    next.on('notification', ({ channel, payload }) => on[channel]?.(payload ?? ''))
    next.on('error', onError)
    next.on('end', () => {
      if (client === next) client = undefined
    })
    try {
      await next.connect()
      await next.query(`SELECT ${sessionGuards}`)
      for (const channel of Object.keys(on)) await next.query(`LISTEN ${pg.escapeIdentifier(channel)}`)
    } catch (error) {
      await next.end()
      throw error
    }
    client = next
    // Whatever was said while nobody listened.
    for (const handle of Object.values(on)) handle('')
  }

  const listening = startLoop({
    intervalMs: reconnectMs,
    onError,
    async run() {
      if (client === undefined && !stopping) await connect()
      return false
    },
  })

  async function notifyAll(channels: readonly string[]): Promise<void> {
    const through = client
    try {
      await through?.query('SELECT pg_notify(channel, $2) FROM unnest($1::text[]) AS c (channel)', [channels, ''])
    } catch (error) {
      if (stopping) return
      onError(error)
      // Its end has the loop make another.
      void through?.end()
    }
  }

  async function tell(): Promise<void> {
    // What is said in one go is told in one.
    await Promise.resolve()
    while (pending.size > 0 && !stopping) {
      const channels = [...pending]
      pending.clear()
      await notifyAll(channels)
      await pause(restMs)
    }
    telling = undefined
  }

  return {
    notify(channel) {
      pending.add(channel)
      telling ??= tell()
    },
    async stop() {
      stopping = true
      await listening.stop()
      await client?.end()
      await telling
    },
  }
}
