import { type RawBuilder, sql } from 'kysely'
import { type AttachableClock, type Db as BossConnection, fromKysely, PgBoss } from 'pg-boss'
import type { Handle, Trx } from '../database/connection.ts'
import { sessionGuards, socketGuards } from '../database/session-guards.ts'
import { idOfUuid, uuidOf } from '../shared/ids.ts'
import { type EmailQueue, openEmailQueue } from './email-queue.ts'
import { type FlowJobs, flowJobs } from './flow-jobs.ts'
import { claimOptions, type JobClaim, openJobs, type QueueDepth } from './jobs.ts'
import { type KeptQueue, openKeptQueue } from './previous-version-queue.ts'

/** A delivery that this process has claimed, and must settle, hand back or drop. */
export type ClaimedDelivery = {
  deliveryId: string
  claim: JobClaim
}

/** Background work that is not a delivery. `data` is JSON. */
export type Task =
  | { name: 'recovery'; data: { accountId: string; recoveryId: string; task: number } }
  /** Added by processes of the previous version, which may still run beside this one. */
  | { name: 'recover'; data: { webhookId: string; since: string; until: string } }
  | { name: 'cancel'; data: { webhookId: string } }

export type TaskData<Name extends Task['name']> = Extract<Task, { name: Name }>['data']

/**
 * The jobs, in pg-boss. A delivery has at most one job, whose id is the UUID inside the delivery's id, so that nothing
 * can put it into the queue twice.
 */
export type Queue = {
  /** Inserts, claims and lists the jobs of deliveries by flow. */
  flows: FlowJobs
  /** Removes deliveries from the queue, whatever the state of their jobs. Deliveries that are not in it are skipped. */
  remove(trx: Trx, deliveryIds: readonly string[]): Promise<void>
  /**
   * Returns a statement that removes jobs, for use after a `WITH`. `uuids` yields the UUIDs in the ids of deliveries.
   */
  removal(uuids: RawBuilder<unknown>): RawBuilder<unknown>
  /**
   * Returns a statement that ends claims without an attempt and puts the jobs back at the head of their flow. `claims`
   * yields `job_id` (the UUID in the id of a delivery, one of `uuids`), the `retry_count` of its claim, and its `flow`.
   * Jobs that were claimed again since are skipped.
   */
  handingBack(uuids: readonly string[], claims: RawBuilder<unknown>): RawBuilder<unknown>
  /** Removes jobs whose claim is still the given one. Jobs that were claimed or inserted again since are skipped. */
  drop(handle: Handle, claimed: readonly ClaimedDelivery[]): Promise<void>
  /**
   * Ends claims without an attempt, so that the jobs can be claimed again. Jobs that were claimed again since are
   * skipped.
   */
  giveBack(claimed: readonly ClaimedDelivery[]): Promise<void>
  /**
   * Sends a heartbeat for claimed deliveries. Call it every few seconds. Returns the ids of those whose claims are alive.
   */
  keepAlive(claimed: readonly ClaimedDelivery[]): Promise<Set<string>>
  /**
   * Returns those of `deliveryIds` that a process has claimed or keeps now. The others cannot be claimed until the
   * transaction ends.
   */
  claimed(handle: Handle, deliveryIds: readonly string[]): Promise<Set<string>>
  /** Returns those of `deliveryIds` without a job of their own that will run. */
  withoutJob(handle: Handle, deliveryIds: readonly string[]): Promise<string[]>
  /** Returns those of `deliveryIds` without a job that will run, and that no process keeps either. */
  missing(handle: Handle, deliveryIds: readonly string[]): Promise<string[]>
  /**
   * Returns an expression for the time at which the job with this UUID was last claimed. Null: never, or there is no
   * job.
   */
  lastClaim(uuid: RawBuilder<unknown>): RawBuilder<Date | null>
  /** Returns a query for the job of a delivery: its `flow`, and `claimed_at`, which is null while it waits. */
  jobOf(deliveryId: string): RawBuilder<unknown>
  depth(): Promise<QueueDepth>
  /** Adds a task, in the transaction that causes it. */
  addTask(trx: Trx, task: Task): Promise<void>
  /** Handles tasks of a name, one at a time. A task that throws is tried again, with pauses. */
  onTask<Name extends Task['name']>(name: Name, work: (data: TaskData<Name>) => Promise<void>): Promise<void>
  /** Runs `work` in one of all processes, at the times of a cron expression in UTC. */
  onSchedule(name: string, cron: string, work: () => Promise<void>): Promise<void>
  /** The emails that wait to be sent. */
  emails: EmailQueue
  /** The deliveries that processes of the previous version keep. */
  kept: KeptQueue
  stop(): Promise<void>
}

/** The database's time in SQL; in tests, the adjusted one. */
export const queueNow = sql<Date>`pgboss.job_now()`

const deliveryQueue = 'deliveries'

/** Far longer than the 30 s of an exchange. */
const expireInSeconds = 3_600

const taskNames: readonly Task['name'][] = ['recovery', 'recover', 'cancel']
const taskOptions = { retryLimit: 1_000, retryDelay: 5, retryBackoff: true, retryDelayMax: 300 } as const

/** Time that tasks have to end at a stop. Another process repeats a task that needs longer. Milliseconds. */
const taskGraceMs = 2_000

export type QueueOptions = {
  connectionString: string
  /** True: this process runs jobs, monitoring and schedules. False: it only adds jobs. */
  works: boolean
  onError: (error: Error) => void
  /** Adjusts the time in tests. Default: the real time. */
  clock?: AttachableClock
  /** Settings for every session, needed by a test clock. */
  sessionOptions?: string
}

/** Starts pg-boss; installs or migrates its schema if needed. */
export async function startQueue(options: QueueOptions): Promise<Queue> {
  const boss = createBoss(options)
  try {
    return await openQueue(boss)
  } catch (error) {
    await boss.stop({ graceful: false })
    throw error
  }
}

/**
 * Configures the sessions that pg-boss uses by itself.
 *
 * synchronous_commit is off: a claim, the end of a task or an installation that a crash of PostgreSQL loses is
 * repeated, so no promise is broken. Jobs are inserted and removed in the transaction of their cause, which does wait
 * for the disk.
 *
 * Parallel workers are off, since pg-boss counts all waiting jobs again and again and must not take all cores for that.
 *
 * Sorting is off, so that rows are read in index order. With statistics from a moment when nothing waited, reading and
 * sorting all waiting jobs looks as cheap to the planner as a claim of ten along the index.
 */
async function prepareSession(session: { query(statement: string): Promise<unknown> }): Promise<void> {
  await session.query(`
    SELECT set_config('synchronous_commit', 'off', false), set_config('max_parallel_workers_per_gather', '0', false),
      set_config('enable_sort', 'off', false), ${sessionGuards}
  `)
}

function createBoss(options: QueueOptions): PgBoss {
  const boss = new PgBoss({
    connectionString: options.connectionString,
    application_name: 'postern queue',
    max: options.works ? 4 : 2,
    schedule: options.works,
    supervise: options.works,
    // These options reach pg's pool unchanged.
    ...{ onConnect: prepareSession, ...socketGuards },
    superviseIntervalSeconds: 15,
    monitorIntervalSeconds: 15,
    cronWorkerIntervalSeconds: 5,
    cronMonitorIntervalSeconds: 15,
    // pg-boss sends the clock to each new session without waiting for the result; `pg` needs pipeline mode for that.
    ...(options.clock === undefined ? {} : { clock: options.clock, pipeline: true }),
    ...(options.sessionOptions === undefined ? {} : { options: options.sessionOptions }),
  })
  boss.on('error', options.onError)
  return boss
}

async function openQueue(boss: PgBoss): Promise<Queue> {
  await boss.start()
  const deliveries = await openJobs(boss, { name: deliveryQueue, expireInSeconds })
  for (const name of taskNames) await boss.createQueue(name, taskOptions)
  const { table: jobs } = deliveries
  const flows = flowJobs(boss, { name: deliveryQueue, tableName: deliveries.tableName })
  const emails = await openEmailQueue(boss)
  const kept = await openKeptQueue(boss, { ...claimOptions, expireInSeconds })

  return {
    emails,
    kept,
    flows,
    async remove(trx, deliveryIds) {
      if (deliveryIds.length === 0) return
      await boss.deleteJob(deliveryQueue, deliveryIds.map(uuidOf), { db: inside(trx) })
    },
    removal: (uuids) => sql`DELETE FROM ${jobs} WHERE name = ${deliveryQueue} AND id = ANY(ARRAY(${uuids}))`,
    // The row that pg-boss's fail would write, except for the flow: see test/queue/handed-back.test.ts.
    handingBack: (uuids, claims) => sql`
      UPDATE ${jobs} j SET state = 'retry', priority = -c.flow, start_after = ${queueNow}, heartbeat_on = NULL
      FROM (${claims}) c
      -- Repeated so that the planner uses an index, however old its statistics are.
      WHERE j.name = ${deliveryQueue} AND j.id = c.job_id AND j.id = ANY(${uuids}::uuid[])
        AND j.state = 'active' AND j.retry_count = c.retry_count
    `,
    async drop(handle, claimed) {
      if (claimed.length === 0) return
      const ids = claimed.map(({ claim }) => claim.id)
      const counts = claimed.map(({ claim }) => claim.retryCount)
      await sql`
        DELETE FROM ${jobs} WHERE name = ${deliveryQueue} AND id = ANY(ARRAY(
          SELECT j.id FROM ${jobs} j JOIN unnest(${ids}::uuid[], ${counts}::int[]) AS i (id, retry_count) ON j.id = i.id
          WHERE j.name = ${deliveryQueue} AND j.id = ANY(${ids}::uuid[]) AND j.state = 'active'
            AND j.retry_count = i.retry_count
          FOR UPDATE OF j SKIP LOCKED
        ))
      `.execute(handle)
    },
    async giveBack(claimed) {
      await boss.fail(
        deliveryQueue,
        claimed.map(({ claim }) => claim),
      )
    },
    async keepAlive(claimed) {
      const alive = await deliveries.keepAlive(claimed.map(({ claim }) => claim))
      return new Set(claimed.flatMap(({ deliveryId, claim }) => (alive.has(claim.id) ? [deliveryId] : [])))
    },
    async claimed(handle, deliveryIds) {
      const ids = deliveryIds.map(uuidOf)
      // Locks the jobs in any state: claims skip locked jobs, and this waits for a claim that came first.
      const { rows } = await sql<{ id: string; claimed: boolean }>`
        SELECT id, state = 'active' AS claimed FROM ${jobs}
        WHERE name = ${deliveryQueue} AND id = ANY(${ids}::uuid[]) ORDER BY id FOR UPDATE
      `.execute(handle)
      const ofTheirOwn = new Map(rows.map((row) => [idOfUuid('delivery', row.id), row.claimed]))
      const inHand = await kept.kept(
        handle,
        deliveryIds.filter((id) => !ofTheirOwn.has(id)),
      )
      return new Set(deliveryIds.filter((id) => ofTheirOwn.get(id) ?? inHand.has(id)))
    },
    withoutJob: deliveries.missing,
    async missing(handle, deliveryIds) {
      const withoutJob = await deliveries.missing(handle, deliveryIds)
      const inHand = await kept.kept(handle, withoutJob)
      return withoutJob.filter((id) => !inHand.has(id))
    },
    lastClaim: (uuid) =>
      sql<Date | null>`(SELECT started_on FROM ${jobs} WHERE name = ${deliveryQueue} AND id = ${uuid})`,
    jobOf: (deliveryId) => sql`
      SELECT -priority AS flow, CASE WHEN state = 'active' THEN started_on END AS claimed_at
      FROM ${jobs} WHERE name = ${deliveryQueue} AND id = ${uuidOf(deliveryId)}::uuid AND state <= 'active'
    `,
    depth: deliveries.depth,
    async addTask(trx, { name, data }) {
      const id = await boss.send(name, data, { db: inside(trx) })
      if (id === null) throw new Error(`the queue dropped a task "${name}"`)
    },
    async onTask(name, work) {
      await boss.work<Parameters<typeof work>[0]>(name, { pollingIntervalSeconds: 1 }, async ([job]) => {
        if (job !== undefined) await work(job.data)
      })
    },
    async onSchedule(name, cron, work) {
      await boss.createQueue(name, { policy: 'stately', retryLimit: 0, expireInSeconds: 3_600 })
      await boss.schedule(name, cron)
      await boss.work(name, { pollingIntervalSeconds: 5 }, work)
    },
    async stop() {
      await boss.stop({ graceful: true, timeout: taskGraceMs })
    },
  }
}

/** Installs or migrates the schema of the queue, and starts nothing. */
export async function installQueue(connectionString: string, onError: (error: Error) => void): Promise<void> {
  const queue = await startQueue({ connectionString, works: false, onError })
  await queue.stop()
}

/** Makes a call of pg-boss use our transaction. */
function inside(handle: Handle): BossConnection {
  return fromKysely(handle)
}
