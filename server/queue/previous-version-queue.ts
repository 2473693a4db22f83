import { sql } from 'kysely'
import type { PgBoss } from 'pg-boss'
import type { Handle } from '../database/connection.ts'

/**
 * Deliveries that processes of the previous version keep in memory after their fan-out. They share one job, which the
 * process has claimed from the start and ends when it has settled the last of them. If the process dies, the claim
 * lapses and each delivery that is still pending gets a job of its own. Needed as long as such processes may run beside
 * this one.
 */
export type KeptQueue = {
  /** Returns those of `deliveryIds` that are kept by a process which still sends heartbeats. */
  kept(handle: Handle, deliveryIds: readonly string[]): Promise<Set<string>>
  /** Calls `work` with deliveries whose process died. Work that throws is tried again. */
  onLapse(work: (deliveryIds: readonly string[]) => Promise<void>): Promise<void>
}

const keptQueue = 'kept'

/** Maximum number of lapsed jobs handled at once: all jobs of one process, even if each was for one delivery. */
const lapsedAtOnce = 500

type Data = { deliveryIds: string[] }

/**
 * Opens the queue.
 *
 * @param options The options of the queue of deliveries, so that a dead process is noticed after the same time.
 */
export async function openKeptQueue(
  boss: PgBoss,
  options: { heartbeatSeconds: number; retryLimit: number; expireInSeconds: number },
): Promise<KeptQueue> {
  await boss.createQueue(keptQueue, { ...options, retryDelay: 0 })
  const found = (await boss.getQueue(keptQueue))?.table
  if (found === undefined) throw new Error(`the queue "${keptQueue}" has no table`)
  const jobs = sql.table(`pgboss.${found}`)

  return {
    async kept(handle, deliveryIds) {
      if (deliveryIds.length === 0) return new Set()
      // A job that was claimed again has lapsed before.
      const { rows } = await sql<{ id: string }>`
        SELECT d.id FROM ${jobs} k, jsonb_array_elements_text(k.data -> 'deliveryIds') AS d (id)
        WHERE k.name = ${keptQueue} AND k.state = 'active' AND k.retry_count = 0 AND d.id = ANY(${deliveryIds}::text[])
      `.execute(handle)
      return new Set(rows.map(({ id }) => id))
    },
    async onLapse(work) {
      await boss.work<Data>(keptQueue, { pollingIntervalSeconds: 5, batchSize: lapsedAtOnce }, async (lapsed) => {
        await work(lapsed.flatMap(({ data }) => data.deliveryIds))
      })
    },
  }
}
