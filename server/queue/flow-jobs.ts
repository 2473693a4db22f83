import { type RawBuilder, sql } from 'kysely'
import type { PgBoss } from 'pg-boss'
import { plainArray } from '../database/arrays.ts'
import { type Db, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import { idOfUuid, uuidOf } from '../shared/ids.ts'
import { type JobClaim, queueTime } from './jobs.ts'
import { freshRange, type PriorityRange, rangeOfDueRetries } from './priority-ranges.ts'

/*
 * Jobs of deliveries are grouped by flow: a flow is one URL of one account, and has a number. The priority of a job is
 * minus that number. Its `created_on` and `start_after` are the time when it is due. So each flow is one contiguous
 * range, ordered by due time, of the index that pg-boss fetches along: (name, priority DESC, created_on, start_after).
 * A claim names flows and a number of jobs for each. Its cost does not depend on what waits in other flows, or on later
 * retries of the same flow.
 *
 * Jobs of the previous version have priorities above those of all flows. See docs/architecture/delivery-engine.md.
 */

/** The smallest flow number. */
export const firstFlow = 1_000_000_000

/** The flow of deliveries whose webhook is deleted: the claim removes them. Larger than all other flow numbers. */
export const noFlow = 2_147_483_647

/** A number of jobs of a flow. */
export type Wanted = { flow: number; count: number }

/** A flow with waiting jobs. */
export type FlowHead = {
  flow: number
  /** True when its first job is due. */
  isDue: boolean
  /** Null: only the number of the flow is known. */
  accountId: string | null
  host: string | null
}

/** A flow whose first job is due. */
export type OverdueFlow = { flow: number; accountId: string; host: string; dueSince: Date }

/** Maximum number of flows among which those that are due the longest are looked for. */
const mostLookedAt = 10_000

export type FlowJob = { deliveryId: string; flow: number; dueAt: Date | null }

export type FlowClaim = { deliveryId: string; flow: number; claim: JobClaim }

export type FlowJobs = {
  /**
   * Returns a statement that inserts jobs, for use after a `WITH`. `rows` yields `id` (the UUID in the id of a
   * delivery), `flow`, `due_at` (null: now) and `is_claimed`. A job with `is_claimed` starts out claimed, with a claim
   * whose `retryCount` is 0.
   */
  insertion(rows: RawBuilder<unknown>): RawBuilder<unknown>
  /** Inserts jobs. Fails if one exists already. */
  put(trx: Trx, jobs: readonly FlowJob[]): Promise<void>
  /** Claims due jobs of these flows, the first of each flow. */
  claim(wanted: readonly Wanted[]): Promise<FlowClaim[]>
  /** Returns up to `limit` flows with waiting jobs and numbers above `after`, in order of number. */
  heads(after: number, limit: number): Promise<FlowHead[]>
  /**
   * Returns up to `limit` flows whose first job is due, the longest due first. Looks at the first 10,000 flows with
   * waiting jobs.
   */
  overdue(limit: number): Promise<OverdueFlow[]>
  /** Deletes up to `limit` flows without a webhook and without waiting jobs. Returns how many were found. */
  deleteUnused(db: Db, limit: number): Promise<number>
  /**
   * Moves up to `limit` jobs of each lane of the previous version into their flows; jobs that are not due only if fewer
   * due ones are left. Claimed jobs are left to their workers. Returns how many were moved, and whether there may be
   * more.
   */
  adopt(db: Db, limit: number): Promise<{ count: number; isFull: boolean }>
}

/** The priorities of waiting jobs of the previous version. */
const before: PriorityRange = { min: 1 - firstFlow, max: freshRange().max }

/**
 * Returns the lanes of the previous version. They are read separately, so that no lane waits for another. The last one
 * is for slow webhooks.
 */
function lanesBefore(now: Date): PriorityRange[] {
  return [freshRange(), rangeOfDueRetries(now), { min: before.min, max: 0 }]
}

/**
 * Creates the queries.
 *
 * @param name The name of the queue.
 * @param tableName The table of its jobs.
 */
export function flowJobs(boss: PgBoss, { name, tableName }: { name: string; tableName: string }): FlowJobs {
  const table = sql.table(tableName)
  /** Written with constants, so that the index for fetching matches. */
  const waiting = `name = '${name}' AND state < 'active' AND NOT blocked`

  // OFFSET 0 reads the time once. The claimed jobs are updated by id, so that the plan does not depend on statistics.
  const claimText = `
    WITH present AS (SELECT pgboss.job_now() AS now OFFSET 0),
    wanted AS (SELECT * FROM unnest($1::int[], $2::int[]) AS w (flow, count)),
    next AS (
      SELECT j.id FROM present p, wanted w CROSS JOIN LATERAL (
        SELECT id FROM ${tableName}
        WHERE ${waiting} AND priority = -w.flow
          AND created_on <= (SELECT now FROM present) AND start_after <= (SELECT now FROM present)
        ORDER BY priority DESC, created_on LIMIT w.count FOR UPDATE SKIP LOCKED
      ) j
    )
    UPDATE ${tableName} j SET
      state = 'active', started_on = p.now, heartbeat_on = p.now,
      retry_count = CASE WHEN j.started_on IS NOT NULL THEN j.retry_count + 1 ELSE j.retry_count END
    FROM present p
    WHERE j.name = '${name}' AND j.id = ANY(ARRAY(SELECT id FROM next))
    RETURNING j.id, j.retry_count AS "retryCount", -j.priority AS flow, j.created_on
  `

  // Loose index scan: one index lookup for each flow, however many jobs wait in it.
  const head = `head AS (
      (SELECT priority, created_on FROM ${tableName} WHERE ${waiting} AND priority < $1
       ORDER BY priority DESC, created_on LIMIT 1)
      UNION ALL
      SELECT n.priority, n.created_on FROM head h CROSS JOIN LATERAL (
        SELECT priority, created_on FROM ${tableName} WHERE ${waiting} AND priority < h.priority
        ORDER BY priority DESC, created_on LIMIT 1
      ) n
    )`
  const headsText = `
    WITH RECURSIVE present AS (SELECT pgboss.job_now() AS now OFFSET 0), ${head}
    SELECT -h.priority AS flow, h.created_on <= p.now AS "isDue", f.account_id AS "accountId", f.host
    FROM (SELECT * FROM head LIMIT $2) h CROSS JOIN present p LEFT JOIN public.delivery_flows f ON f.number = -h.priority
    ORDER BY h.priority DESC
  `

  const overdueText = `
    WITH RECURSIVE present AS (SELECT pgboss.job_now() AS now OFFSET 0), ${head}
    SELECT -h.priority AS flow, h.created_on AS "dueSince", f.account_id AS "accountId", f.host
    FROM (SELECT * FROM head LIMIT ${mostLookedAt}) h CROSS JOIN present p
      JOIN public.delivery_flows f ON f.number = -h.priority
    WHERE h.created_on <= p.now
    ORDER BY h.created_on, h.priority DESC LIMIT $2
  `

  // The row that pg-boss's insert and fetch would write, except for `created_on`: see test/queue/flow-jobs.test.ts.
  const insertion = (rows: RawBuilder<unknown>) => sql`
    INSERT INTO ${table} (
      id, name, priority, start_after, created_on, keep_until, state, started_on, heartbeat_on, expire_seconds,
      deletion_seconds, retry_limit, retry_delay, retry_backoff, retry_delay_max, policy, dead_letter, heartbeat_seconds
    )
    SELECT j.id, q.name, -j.flow, coalesce(j.due_at, n.now), coalesce(j.due_at, n.now),
      coalesce(j.due_at, n.now) + make_interval(secs => q.retention_seconds),
      CASE WHEN j.is_claimed THEN 'active' ELSE 'created' END::pgboss.job_state,
      CASE WHEN j.is_claimed THEN n.now END, CASE WHEN j.is_claimed THEN n.now END, q.expire_seconds,
      q.deletion_seconds, q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max, q.policy, q.dead_letter,
      q.heartbeat_seconds
    FROM (SELECT pgboss.job_now() AS now OFFSET 0) n, pgboss.queue q, (${rows}) j
    WHERE q.name = ${name}
  `

  return {
    insertion,
    async put(trx, jobs) {
      if (jobs.length === 0) return
      const rows = sql`
        SELECT id, flow, due_at, false AS is_claimed FROM unnest(
          ${plainArray(jobs.map(({ deliveryId }) => uuidOf(deliveryId)))}::uuid[],
          ${plainArray(jobs.map(({ flow }) => flow))}::int[],
          ${plainArray(jobs.map(({ dueAt }) => dueAt?.toISOString() ?? null))}::timestamptz[]
        ) AS j (id, flow, due_at)
      `
      await executePrepared(trx, { name: 'put_deliveries', sendsWithNext: true }, insertion(rows))
    },
    async claim(wanted) {
      const { rows } = await boss
        .getDb()
        .executeSql(claimText, [wanted.map(({ flow }) => flow), wanted.map(({ count }) => count)])
      type Row = JobClaim & { flow: number; created_on: Date }
      return (rows as Row[])
        .toSorted((a, b) => a.created_on.getTime() - b.created_on.getTime())
        .map(({ id, retryCount, flow }) => ({ deliveryId: idOfUuid('delivery', id), flow, claim: { id, retryCount } }))
    },
    async heads(after, limit) {
      const { rows } = await boss.getDb().executeSql(headsText, [-Math.max(after, firstFlow - 1), limit])
      return rows
    },
    async overdue(limit) {
      const { rows } = await boss.getDb().executeSql(overdueText, [1 - firstFlow, limit])
      return rows
    },
    deleteUnused: (db, limit) =>
      inTransaction(db, async (trx) => {
        const { rows } = await sql<{ number: number }>`
          SELECT number FROM delivery_flows f
          WHERE NOT EXISTS (SELECT FROM webhooks WHERE flow = f.number)
            AND NOT EXISTS (SELECT FROM ${table} WHERE ${sql.raw(waiting)} AND priority = -f.number)
          LIMIT ${limit} FOR UPDATE SKIP LOCKED
        `.execute(trx)
        // This statement sees the webhooks committed before the flows were locked. Later webhooks find the flows
        // deleted.
        await sql`
          DELETE FROM delivery_flows f WHERE number = ANY(${plainArray(rows.map(({ number }) => number))}::int[])
            AND NOT EXISTS (SELECT FROM webhooks WHERE flow = f.number)
        `.execute(trx)
        return rows.length
      }),
    async adopt(db, limit) {
      const due = await adoptFrom(db, lanesBefore(await queueTime(boss)), limit)
      if (due.isFull) return due
      const { count, isFull } = await adoptFrom(db, [before], limit)
      return { count: due.count + count, isFull }
    },
  }

  async function adoptFrom(db: Db, lanes: readonly PriorityRange[], limit: number) {
    return inTransaction(db, async (trx) => {
      const { rows } = await sql<{ id: string; lane: number }>`
        SELECT j.id, l.max AS lane FROM unnest(
          ${plainArray(lanes.map(({ min }) => min))}::int[], ${plainArray(lanes.map(({ max }) => max))}::int[]
        ) AS l (min, max) CROSS JOIN LATERAL (
          SELECT id FROM ${table} WHERE ${sql.raw(waiting)} AND priority BETWEEN l.min AND l.max
          ORDER BY priority DESC, created_on LIMIT ${limit} FOR UPDATE SKIP LOCKED
        ) j
      `.execute(trx)
      const uuids = rows.map(({ id }) => id)
      const flows = await flowsOf(
        trx,
        uuids.map((id) => idOfUuid('delivery', id)),
      )
      await sql`
        UPDATE ${table} j SET priority = -i.flow, created_on = j.start_after
        FROM unnest(${plainArray(uuids)}::uuid[], ${plainArray(flows)}::int[]) AS i (id, flow)
        WHERE j.name = ${name} AND j.id = i.id AND j.id = ANY(${plainArray(uuids)}::uuid[])
      `.execute(trx)
      const byLane = Map.groupBy(rows, ({ lane }) => lane)
      return { count: uuids.length, isFull: [...byLane.values()].some(({ length }) => length === limit) }
    })
  }
}

/** Returns the flows of deliveries, in the given order; `noFlow` if the delivery or its webhook is deleted. */
async function flowsOf(handle: Handle, deliveryIds: readonly string[]): Promise<number[]> {
  const { rows } = await sql<{ id: string; flow: number }>`
    SELECT d.id, w.flow FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
    WHERE d.id = ANY(${plainArray(deliveryIds)}::text[])
  `.execute(handle)
  const known = new Map(rows.map(({ id, flow }) => [id, flow]))
  return deliveryIds.map((id) => known.get(id) ?? noFlow)
}
