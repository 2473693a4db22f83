import { sql } from 'kysely'
import pg from 'pg'
import { applicationName, type Db } from './database/connection.ts'
import { startLoop } from './loop.ts'

/** Messages between the processes of the service, over NOTIFY. Speed only: all of them may be lost. */
export type WakeUps = {
  /**
   * Tells the other processes. Calls close together become one NOTIFY, outside any transaction: a
   * NOTIFY inside one would have all commits wait for each other.
   */
  notify(channel: string): void
  stop(): Promise<void>
}

export type WakeUpOptions = {
  db: Db
  connectionString: string
  /** What to do on a message, by channel. */
  on: Record<string, (payload: string) => void>
  onError: (error: unknown) => void
}

const coalesceMs = 5
const reconnectMs = 1_000
const connectTimeoutMs = 5_000

export function startWakeUps({ db, connectionString, on, onError }: WakeUpOptions): WakeUps {
  const pending = new Set<string>()
  let client: pg.Client | undefined
  let notifying: NodeJS.Timeout | undefined
  let stopping = false

  async function connect(): Promise<void> {
    const next = new pg.Client({
      connectionString,
      application_name: `${applicationName} wake-ups`,
      keepAlive: true,
      connectionTimeoutMillis: connectTimeoutMs,
    })
    next.on('notification', ({ channel, payload }) => on[channel]?.(payload ?? ''))
    next.on('error', onError)
    next.on('end', () => {
      if (client === next) client = undefined
    })
    try {
      await next.connect()
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

  async function flush(): Promise<void> {
    notifying = undefined
    const channels = [...pending]
    pending.clear()
    try {
      for (const channel of channels) await sql`SELECT pg_notify(${channel}, '')`.execute(db)
    } catch (error) {
      onError(error)
    }
  }

  return {
    notify(channel) {
      pending.add(channel)
      notifying ??= setTimeout(() => void flush(), coalesceMs)
    },
    async stop() {
      stopping = true
      clearTimeout(notifying)
      await listening.stop()
      await client?.end()
    },
  }
}
