import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import { connect, type Db } from '../../../server/database/connection.ts'
import { describeSessions } from '../../support/locks.ts'
import { patienceMs } from '../../support/patience.ts'

/** The `application_name` of the sessions of the tests. Faults spare these sessions. */
const testName = 'fault test'

/** A pool that outlives every fault: what breaks in it is replaced when it is needed. */
export function connectTester(connectionString: string): Db {
  return connect({ connectionString, applicationName: testName, max: 6, onError: () => undefined })
}

/** Cuts the connections of the service, or only those called `name`. Answers how many there were. */
export async function cutSessions(db: Db, name: string | null = null): Promise<number> {
  const { rows } = await sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name <> ${testName}
      AND (${name}::text IS NULL OR application_name = ${name})
  `.execute(db)
  return rows.length
}

const pollMs = 5

/**
 * Resolves once no session of the service runs a statement, but for those that wait for a lock. Rejects after
 * `patienceMs`, with what the sessions do.
 */
export async function untilSessionsRest(db: Db): Promise<void> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const { rows } = await sql`
      SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND application_name <> ${testName} AND backend_type = 'client backend'
        AND state = 'active' AND wait_event_type IS DISTINCT FROM 'Lock'
    `.execute(db)
    if (rows.length === 0) return
    if (performance.now() > deadline) throw new Error(`sessions never rest: ${(await describeSessions(db)).join('; ')}`)
    await delay(pollMs)
  }
}

/** A transaction of somebody else's, who takes their time. */
export type Holder = AsyncDisposable & {
  run(statement: string, values?: unknown[]): Promise<void>
  commit(): Promise<void>
}

/** Disposing rolls it back. */
export async function startHolder(connectionString: string): Promise<Holder> {
  const client = new pg.Client({ connectionString, application_name: testName })
  client.on('error', () => undefined)
  await client.connect()
  await client.query('BEGIN')
  return {
    async run(statement, values = []) {
      await client.query(statement, values)
    },
    async commit() {
      await client.query('COMMIT')
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}
