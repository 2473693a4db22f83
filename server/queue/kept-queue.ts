import { sql } from 'kysely'
import type { PgBoss } from 'pg-boss'
import type { Handle } from '../database/connection.ts'

/**
 * What processes of the version before keep of what they fan out: deliveries that share one job, which their process
 * has claimed from the start and ends when it has settled the last of them. When the process is gone the claim lapses,
 * and each of them that is still pending gets a job of its own. For as long as such processes may run beside this one.
 */
export type KeptQueue = {
  /** Of `deliveryIds`, those that are kept by a process which still reports. */
  kept(handle: Handle, deliveryIds: readonly string[]): Promise<Set<string>>
  /** Works on deliveries whose process is gone; what throws is tried again. */
  onLapse(work: (deliveryIds: readonly string[]) => Promise<void>): Promise<void>
}

const keptQueue = 'kept'

/** Jobs worked on at once that have lapsed: all that a process had in hand, also where each was for one delivery. */
const lapsedAtOnce = 500

type Data = { deliveryIds: string[] }

/** @param options Those of a queue of deliveries: whoever does not report is taken for dead after the same time. */
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
      // One that was claimed again has lapsed before.
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
