import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { applicationName } from '../database/connection.ts'
import { sessionGuards, socketGuards } from '../database/session-guards.ts'
import { startLoop } from '../lib/polling-loop.ts'

/** Messages between the processes of the service, over NOTIFY. They only speed things up: all of them may be lost. */
export type WakeUps = {
  /**
   * Notifies the other processes: at once, or together with other calls if there was a NOTIFY just now. Without a
   * connection, for example just after the start, the message is sent once there is one. It is sent outside of
   * transactions: commits with a NOTIFY wait for each other.
   */
  notify(channel: string): void
  stop(): Promise<void>
}

export type WakeUpOptions = {
  connectionString: string
  /** Handlers by channel. Called with an empty payload too, when messages may have been missed. */
  on: Record<string, (payload: string) => void>
  /** Told whether notifications arrive. */
  hearing?: Hearing
  /** Milliseconds between two checks of the connection, and the time limit of a check. Default 5,000. */
  aliveMs?: number
  onError: (error: unknown) => void
}

export type Hearing = {
  /**
   * Called when the connection listens and has responded: every message sent after it began to listen and before
   * `askedAt` has been handled. Milliseconds, monotonic.
   */
  hear(askedAt: number): void
  /**
   * Called when notifications no longer arrive. If the connection is dead without an error, that is noticed after 2 ×
   * `aliveMs` at most.
   */
  hearNoMore(): void
}

/** Minimum time between two NOTIFYs. Milliseconds. */
const restMs = 5
const connectTimeoutMs = 5_000

export function startWakeUps(options: WakeUpOptions): WakeUps {
  const { connectionString, on, hearing, onError, aliveMs = 5_000 } = options
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
      // A statement that takes longer shows that the connection is dead.
      query_timeout: aliveMs,
    })
    next.on('notification', ({ channel, payload }) => on[channel]?.(payload ?? ''))
    next.on('error', onError)
    next.on('end', () => {
      if (client !== next) return
      lose()
      listening.wake()
    })
    const askedAt = performance.now()
    try {
      await next.connect()
      await next.query(`SELECT ${sessionGuards}`)
      for (const channel of Object.keys(on)) await next.query(`LISTEN ${pg.escapeIdentifier(channel)}`)
    } catch (error) {
      await next.end()
      throw error
    }
    client = next
    // Messages may have been missed while this process did not listen.
    for (const handle of Object.values(on)) handle('')
    hearing?.hear(askedAt)
    tellPending()
  }

  function lose(): void {
    client = undefined
    hearing?.hearNoMore()
  }

  /**
   * Checks the connection. PostgreSQL sends pending notifications before the response, so all earlier ones have
   * arrived.
   */
  async function ask(through: pg.Client): Promise<void> {
    const askedAt = performance.now()
    try {
      await through.query('SELECT 1')
    } catch (error) {
      if (client === through) lose()
      void through.end()
      throw error
    }
    if (client === through) hearing?.hear(askedAt)
  }

  const listening = startLoop({
    intervalMs: aliveMs,
    onError,
    async run() {
      if (stopping) return false
      if (client === undefined) await connect()
      else await ask(client)
      return false
    },
  })

  async function notifyAll(through: pg.Client, channels: readonly string[]): Promise<void> {
    try {
      await through.query('SELECT pg_notify(channel, $2) FROM unnest($1::text[]) AS c (channel)', [channels, ''])
    } catch (error) {
      if (stopping) return
      onError(error)
      // When the connection has ended, the loop opens a new one.
      void through.end()
    }
  }

  async function tell(): Promise<void> {
    // Calls in the same turn of the event loop share one NOTIFY.
    await Promise.resolve()
    while (client !== undefined && pending.size > 0 && !stopping) {
      const channels = [...pending]
      pending.clear()
      await notifyAll(client, channels)
      await pause(restMs)
    }
    telling = undefined
  }

  function tellPending(): void {
    if (pending.size > 0) telling ??= tell()
  }

  return {
    notify(channel) {
      pending.add(channel)
      tellPending()
    },
    async stop() {
      stopping = true
      await listening.stop()
      await client?.end()
      await telling
    },
  }
}
