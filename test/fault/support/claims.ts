import { sql } from 'kysely'
import { PgBoss } from 'pg-boss'
import type { Db } from '../../../server/database/connection.ts'
import { idOfUuid } from '../../../server/shared/ids.ts'
import type { LostClaim } from './ledger.ts'

/** Returns the current claims and leases: all that a process that has just died can have had in hand. */
export async function claimsOf(db: Db): Promise<LostClaim[]> {
  const jobs = await sql<{ id: string; claimedAt: Date }>`
    SELECT id, started_on AS "claimedAt" FROM pgboss.job WHERE name = 'deliveries' AND state = 'active'
  `.execute(db)
  const leases = await sql<LostClaim>`
    SELECT event_id AS of, leased_until AS "claimedAt" FROM outbox_rows WHERE lease IS NOT NULL
  `.execute(db)
  return [...jobs.rows.map(({ id, claimedAt }) => ({ of: idOfUuid('delivery', id), claimedAt })), ...leases.rows]
}

/**
 * Has the claims and leases of dead processes lapse now, which they do by themselves after 20 to 35 seconds: it
 * makes them a minute older and looks after them as every process does. Not while one lives that claims.
 */
export async function lapseClaims({ db, connectionString }: { db: Db; connectionString: string }): Promise<void> {
  await sql`
    UPDATE pgboss.job SET heartbeat_on = heartbeat_on - interval '1 minute' WHERE state = 'active'
  `.execute(db)
  await sql`UPDATE outbox_rows SET leased_until = leased_until - interval '1 minute' WHERE lease IS NOT NULL`.execute(
    db,
  )
  await sql`UPDATE pgboss.queue SET monitor_claim_on = NULL, monitor_on = NULL`.execute(db)
  const boss = new PgBoss({ connectionString, supervise: false, schedule: false, max: 1 })
  boss.on('error', () => undefined)
  await boss.start()
  await boss.supervise()
  await boss.stop({ graceful: false })
}
