import { sql } from 'kysely'
import { PgBoss } from 'pg-boss'
import type { Db } from '../../../server/database/connection.ts'
import { idOfUuid } from '../../../server/ids.ts'
import type { LostClaim } from './ledger.ts'

/** What is claimed at this moment: all that a process that has just died can have had in hand. */
export async function claimsOf(db: Db): Promise<LostClaim[]> {
  const { rows } = await sql<{ id: string; kept: string[] | null; started_on: Date }>`
    SELECT id, data -> 'deliveryIds' AS kept, started_on FROM pgboss.job
    WHERE name IN ('deliveries', 'kept') AND state = 'active'
  `.execute(db)
  return rows.flatMap(({ id, kept, started_on: claimedAt }) =>
    (kept ?? [idOfUuid('delivery', id)]).map((deliveryId) => ({ deliveryId, claimedAt })),
  )
}

/**
 * Has the claims of dead processes lapse now, which they do by themselves after 20 to 35 seconds: it
 * makes them a minute older and looks after them as every process does. Not while one lives that claims.
 */
export async function lapseClaims({ db, connectionString }: { db: Db; connectionString: string }): Promise<void> {
  await sql`
    UPDATE pgboss.job SET heartbeat_on = heartbeat_on - interval '1 minute' WHERE state = 'active'
  `.execute(db)
  await sql`UPDATE pgboss.queue SET monitor_claim_on = NULL, monitor_on = NULL`.execute(db)
  const boss = new PgBoss({ connectionString, supervise: false, schedule: false, max: 1 })
  boss.on('error', () => undefined)
  await boss.start()
  await boss.supervise()
  await boss.stop({ graceful: false })
}
