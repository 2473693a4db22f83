import { type RawBuilder, sql } from 'kysely'
import type { Job, PgBoss } from 'pg-boss'
import type { Handle } from '../database/connection.ts'
import { uuidOf } from '../shared/ids.ts'
import type { PriorityRange } from './priority-ranges.ts'

/** Identifies a claim of a job. When it lapses and another worker claims the job, `retryCount` is higher. */
export type JobClaim = { id: string; retryCount: number }

/** Numbers of jobs, as of the last monitoring pass: at most a minute old. */
export type QueueDepth = { ready: number; scheduled: number; claimed: number }

/**
 * The jobs of one kind, in a table of their own. An item has at most one job, whose id is the UUID inside the item's
 * id, so that nothing can put it into the queue twice.
 */
export type Jobs = {
  /** The table, for own statements. */
  table: RawBuilder<unknown>
  /** The name of the table. */
  tableName: string
  /** Claims up to `limit` due jobs of a range of priorities, the highest first. */
  claim(range: PriorityRange, limit: number): Promise<JobClaim[]>
  /** Sends a heartbeat for claimed jobs. Call it every few seconds. Returns the ids of those whose claims are alive. */
  keepAlive(claims: readonly JobClaim[]): Promise<Set<string>>
  /** Returns those of the `ids` without a job that will run. */
  missing(handle: Handle, ids: readonly string[]): Promise<string[]>
  depth(): Promise<QueueDepth>
}

/**
 * No job is in a group, so this limit never applies. It makes pg-boss write the claim so that jobs are looked up by id,
 * whatever the planner's statistics say. Without it, with statistics from a moment when nothing waited, the planner
 * compares all waiting jobs with all claimed ones: 45 s for 500 of 100,000.
 */
const noLimit = 1_000_000

/** Options of every queue whose workers claim jobs and send heartbeats. */
export const claimOptions = {
  // After this time without a heartbeat a worker counts as dead, and its jobs are claimed again.
  heartbeatSeconds: 20,
  // pg-boss counts a retry only when a worker died; there is no limit to that.
  retryLimit: 1_000_000,
} as const

const options = {
  ...claimOptions,
  partition: true,
  retryDelay: 0,
  // A job may wait as long as its item does.
  retentionSeconds: 365 * 24 * 3_600,
} as const

/**
 * Creates or opens a queue.
 *
 * @param expireInSeconds Upper bound for a worker that sends heartbeats but never ends.
 */
export async function openJobs(
  boss: PgBoss,
  { name, expireInSeconds }: { name: string; expireInSeconds: number },
): Promise<Jobs> {
  await boss.createQueue(name, { ...options, expireInSeconds })
  const found = (await boss.getQueue(name))?.table
  if (found === undefined) throw new Error(`the queue "${name}" has no table`)
  const tableName = `pgboss.${found}`
  const table = sql.table(tableName)
  return {
    table,
    tableName,
    async claim(range, limit) {
      const claimed: Job[] = await boss.fetch(name, {
        batchSize: limit,
        minPriority: range.min,
        maxPriority: range.max,
        groupConcurrency: noLimit,
      })
      return claimed.map(({ id, retryCount }) => ({ id, retryCount }))
    },
    async keepAlive(claims) {
      if (claims.length === 0) return new Set()
      // Like pg-boss's touch, but skips locked jobs: their claims are about to end. So it never waits, and needs no
      // lock order.
      const { rows }: { rows: { id: string }[] } = await boss.getDb().executeSql(
        `UPDATE ${tableName} SET heartbeat_on = pgboss.job_now() WHERE name = $1 AND id = ANY(ARRAY(
           SELECT j.id FROM ${tableName} j JOIN unnest($2::uuid[], $3::int[]) AS i (id, retry_count) ON j.id = i.id
           WHERE j.name = $1 AND j.id = ANY($2::uuid[]) AND j.state = 'active' AND j.retry_count = i.retry_count
           FOR NO KEY UPDATE OF j SKIP LOCKED
         )) RETURNING id`,
        [name, claims.map(({ id }) => id), claims.map(({ retryCount }) => retryCount)],
      )
      return new Set(rows.map(({ id }) => id))
    },
    async missing(handle, ids) {
      const uuids = ids.map(uuidOf)
      const { rows } = await sql<{ id: string }>`
        SELECT id FROM ${table} WHERE name = ${name} AND id = ANY(${uuids}::uuid[]) AND state <= 'active'
      `.execute(handle)
      const present = new Set(rows.map((row) => row.id))
      return ids.filter((_, index) => !present.has(uuids[index] as string))
    },
    async depth() {
      const counts = await boss.getQueue(name)
      return {
        ready: counts?.readyCount ?? 0,
        scheduled: counts?.deferredCount ?? 0,
        claimed: counts?.activeCount ?? 0,
      }
    },
  }
}

/** Returns the time that the queues use: that of the database, which all processes share. */
export async function queueTime(boss: PgBoss): Promise<Date> {
  const { rows } = await boss.getDb().executeSql('SELECT pgboss.job_now() AS now')
  return rows[0].now
}
