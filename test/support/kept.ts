import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../../server/database/connection.ts'

/** Has deliveries kept as a process of the version before kept what it had fanned out. Returns the id of their job. */
export async function keepAsBefore(db: Db, deliveryIds: readonly string[]): Promise<string> {
  const id = randomUUID()
  await sql`
    INSERT INTO pgboss.job (id, name, data, state, started_on, heartbeat_on, heartbeat_seconds, expire_seconds, retry_limit)
    VALUES (${id}, 'kept', ${JSON.stringify({ deliveryIds })}, 'active', pgboss.job_now(), pgboss.job_now(), 20, 3600, 1000000)
  `.execute(db)
  return id
}
