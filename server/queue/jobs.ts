import { type RawBuilder, sql } from 'kysely'
import type { Job, PgBoss } from 'pg-boss'
import type { Handle } from '../database/connection.ts'
import { uuidOf } from '../shared/ids.ts'
import type { PriorityRange } from './priority-ranges.ts'

/** Names the claim of a job: one that lapsed and was made again by another worker has another name. */
export type JobClaim = { id: string; retryCount: number }

/** Counts of jobs; as of the last monitoring pass, at most a minute old. */
export type QueueDepth = { ready: number; scheduled: number; claimed: number }

/**
 * The jobs of one kind of thing, in a table of their own. A thing has at most one job, whose id is the UUID
 * inside its own, so that nothing can put it into the queue twice.
 */
export type Jobs = {
  /** For statements of our own. */
  table: RawBuilder<unknown>
  /** The same, as text. */
  tableName: string
  /** Claims up to `limit` due jobs of a range of priorities, the highest first. */
  claim(range: PriorityRange, limit: number): Promise<JobClaim[]>
  /** Says that claimed jobs are still being worked on; needed every few seconds. */
  keepAlive(claims: readonly JobClaim[]): Promise<void>
  /** Of the things with these ids, those that have no job that will ever run. */
  missing(handle: Handle, ids: readonly string[]): Promise<string[]>
  depth(): Promise<QueueDepth>
}

/**
 * No job is in a group, and none is limited. With a limit pg-boss writes the claim so that the jobs are
 * looked up by their ids whatever the planner knows of the table; without, statistics from a moment when
 * nothing waited make it compare all that waits with all it claims: 45 s for 500 of 100,000.
 */
const noLimit = 1_000_000

/** Of every queue whose jobs a worker claims and reports on. */
export const claimOptions = {
  // A worker that does not report for this long is taken for dead and what it had is claimed again.
  heartbeatSeconds: 20,
  // pg-boss retries are only for a worker that died, as often as that happens.
  retryLimit: 1_000_000,
} as const

const options = {
  ...claimOptions,
  partition: true,
  retryDelay: 0,
  // A job may wait as long as what it is for does.
  retentionSeconds: 365 * 24 * 3_600,
} as const

/** @param expireInSeconds A bound for a worker that reports but never ends. */
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
      if (claims.length === 0) return
      // What pg-boss's touch does, but for jobs that are locked: their claims are about to end. It never waits, so that
      // no order of locking has to hold.
      await boss.getDb().executeSql(
        `UPDATE ${tableName} SET heartbeat_on = pgboss.job_now() WHERE name = $1 AND id = ANY(ARRAY(
           SELECT j.id FROM ${tableName} j JOIN unnest($2::uuid[], $3::int[]) AS i (id, retry_count) ON j.id = i.id
           WHERE j.name = $1 AND j.id = ANY($2::uuid[]) AND j.state = 'active' AND j.retry_count = i.retry_count
           FOR NO KEY UPDATE OF j SKIP LOCKED
         ))`,
        [name, claims.map(({ id }) => id), claims.map(({ retryCount }) => retryCount)],
      )
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

/** What the queues take for now: the time of the database, which all processes share. */
export async function queueTime(boss: PgBoss): Promise<Date> {
  const { rows } = await boss.getDb().executeSql('SELECT pgboss.job_now() AS now')
  return rows[0].now
}
