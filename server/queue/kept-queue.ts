import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { PgBoss } from 'pg-boss'
import type { Handle, Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'

/**
 * What processes keep of what they fan out: deliveries that share one job, which their process has claimed from
 * the start and ends when it has settled the last of them. When the process is gone the claim lapses, and whoever
 * claims the job then gives each of them that is still pending a job of its own.
 */
export type KeptQueue = {
  /** Puts deliveries in that `trx` has made, and answers the id of their job. Until `trx` commits nobody has them. */
  keep(trx: Trx, deliveryIds: readonly string[]): Promise<string>
  /** Says that these are still being worked on; needed every few seconds. */
  keepAlive(jobIds: readonly string[]): Promise<void>
  /** Takes jobs out: each of their deliveries is settled, or has a job of its own. */
  end(jobIds: readonly string[]): Promise<void>
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
    async keep(trx, deliveryIds) {
      const id = randomUUID()
      const data: Data = { deliveryIds: [...deliveryIds] }
      // What pg-boss's insert and fetch would leave, in one: see test/queue/kept.test.ts.
      const insertion = sql`
        INSERT INTO ${jobs} (
          id, name, data, state, start_after, created_on, started_on, heartbeat_on, keep_until,
          expire_seconds, deletion_seconds, retry_limit, retry_delay, retry_backoff, retry_delay_max, policy,
          dead_letter, heartbeat_seconds
        )
        SELECT ${id}::uuid, q.name, ${JSON.stringify(data)}::jsonb, 'active', n.now, n.now, n.now, n.now,
          n.now + make_interval(secs => q.retention_seconds),
          q.expire_seconds, q.deletion_seconds, q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max, q.policy,
          q.dead_letter, q.heartbeat_seconds
        FROM (SELECT pgboss.job_now() AS now OFFSET 0) n, pgboss.queue q
        WHERE q.name = ${keptQueue}
      `
      await executePrepared(trx, { name: 'keep', sendsWithNext: true }, insertion)
      return id
    },
    async keepAlive(jobIds) {
      const firstClaims = jobIds.map((id) => ({ id, retryCount: 0 }))
      if (firstClaims.length > 0) await boss.touch(keptQueue, firstClaims)
    },
    async end(jobIds) {
      if (jobIds.length > 0) await boss.deleteJob(keptQueue, [...jobIds])
    },
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
      await boss.work<Data>(keptQueue, { pollingIntervalSeconds: 1, batchSize: lapsedAtOnce }, async (lapsed) => {
        await work(lapsed.flatMap(({ data }) => data.deliveryIds))
      })
    },
  }
}
