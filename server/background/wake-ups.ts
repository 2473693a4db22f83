import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { applicationName } from '../database/connection.ts'
import { sessionGuards, socketGuards } from '../database/session-guards.ts'
import { startLoop } from '../lib/loop.ts'

/** Messages between the processes of the service, over NOTIFY. Speed only: all of them may be lost. */
export type WakeUps = {
  /**
   * Tells the other processes, at once when nothing was told just now; calls close together become one
   * NOTIFY. Without a connection, as just after the start, it is told when there is one. It is outside any transaction:
   * a NOTIFY inside one would have all commits wait for each other.
   */
  notify(channel: string): void
  stop(): Promise<void>
}

export type WakeUpOptions = {
  connectionString: string
  /** What to do on a message, by channel. Called with an empty one too, when some may have been missed. */
  on: Record<string, (payload: string) => void>
  /** Told whether it hears. */
  hearing?: Hearing
  /** How often the connection is asked, and how long its answer may take. Milliseconds. Default 5,000. */
  aliveMs?: number
  onError: (error: unknown) => void
}

export type Hearing = {
  /**
   * It listens, and has answered: all that was said since it listens and before `askedAt` has been heard.
   * Milliseconds, monotonic.
   */
  hear(askedAt: number): void
  /** Nothing is heard any more: of a connection that is dead and looks alive after 2 × `aliveMs` at most. */
  hearNoMore(): void
}

/** Between one NOTIFY and the next. Milliseconds. */
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
    // Whatever was said while nobody listened.
    for (const handle of Object.values(on)) handle('')
    hearing?.hear(askedAt)
    tellPending()
  }

  function lose(): void {
    client = undefined
    hearing?.hearNoMore()
  }

  /** PostgreSQL sends what was notified before it answers. */
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
      // Its end has the loop make another.
      void through.end()
    }
  }

  async function tell(): Promise<void> {
    // What is said in one go is told in one.
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
