import { type RawBuilder, sql } from 'kysely'
import { type AttachableClock, type Db as BossConnection, fromKysely, PgBoss } from 'pg-boss'
import type { Handle, Trx } from '../database/connection.ts'
import { sessionGuards, socketGuards } from '../database/session-guards.ts'
import { idOfUuid, uuidOf } from '../shared/ids.ts'
import { type EmailQueue, openEmailQueue } from './email-queue.ts'
import { type FlowJobs, flowJobs } from './flow-jobs.ts'
import { claimOptions, type JobClaim, openJobs, type QueueDepth } from './jobs.ts'
import { type KeptQueue, openKeptQueue } from './kept-queue.ts'

/** A delivery that this process has claimed and must settle, requeue or drop. */
export type ClaimedDelivery = {
  deliveryId: string
  claim: JobClaim
}

/** Work in the background that is not a delivery. `data` is JSON. */
export type Task =
  | { name: 'recovery'; data: { accountId: string; recoveryId: string; task: number } }
  /** Put in by processes of the version before, which may still run beside this one. */
  | { name: 'recover'; data: { webhookId: string; since: string; until: string } }
  | { name: 'cancel'; data: { webhookId: string } }

export type TaskData<Name extends Task['name']> = Extract<Task, { name: Name }>['data']

/**
 * The jobs, in pg-boss. A delivery has at most one job, whose id is the UUID inside the id of the
 * delivery, so that nothing can put it into the queue twice.
 */
export type Queue = {
  /** The jobs of deliveries by their flows: put in, claimed, looked through. */
  flows: FlowJobs
  /** Takes deliveries out, whatever the state of their jobs. Those that are not in are passed over. */
  remove(trx: Trx, deliveryIds: readonly string[]): Promise<void>
  /** A statement that takes out deliveries, for one with a `WITH` before it; `uuids` yields the UUIDs in their ids. */
  removal(uuids: RawBuilder<unknown>): RawBuilder<unknown>
  /**
   * A statement that ends claims of what was not attempted and puts it back, first of its flow. `claims` yields
   * `job_id`, the UUID in the id of a delivery and one of `uuids`, the `retry_count` of its claim, and its `flow`.
   * Those claimed anew since are passed over.
   */
  handingBack(uuids: readonly string[], claims: RawBuilder<unknown>): RawBuilder<unknown>
  /** Takes out what is still claimed so: neither claimed anew nor put in anew since. */
  drop(handle: Handle, claimed: readonly ClaimedDelivery[]): Promise<void>
  /** Ends claims of what was not attempted: whoever claims next has it. Those claimed anew since are passed over. */
  giveBack(claimed: readonly ClaimedDelivery[]): Promise<void>
  /** Says that claimed deliveries are still being worked on; needed every few seconds. */
  keepAlive(claimed: readonly ClaimedDelivery[]): Promise<void>
  /**
   * Of `deliveryIds`, those that a process has in hand at present. The others are not claimed before a transaction
   * ends.
   */
  claimed(handle: Handle, deliveryIds: readonly string[]): Promise<Set<string>>
  /** Of `deliveryIds`, those that have no job of their own that will ever run. */
  withoutJob(handle: Handle, deliveryIds: readonly string[]): Promise<string[]>
  /** Of those, the ones that no process keeps either. */
  missing(handle: Handle, deliveryIds: readonly string[]): Promise<string[]>
  /** An expression for when the job with this UUID was last claimed. Null: it was not, or there is none. */
  lastClaim(uuid: RawBuilder<unknown>): RawBuilder<Date | null>
  /** A query for the job of a delivery: its `flow`, and `claimed_at`, which is null while it waits. */
  jobOf(deliveryId: string): RawBuilder<unknown>
  depth(): Promise<QueueDepth>
  /** Puts a task in, in the transaction that causes it. */
  addTask(trx: Trx, task: Task): Promise<void>
  /** Works on tasks of a name, one at a time; one that throws is tried again, with pauses. */
  onTask<Name extends Task['name']>(name: Name, work: (data: TaskData<Name>) => Promise<void>): Promise<void>
  /** Has `work` done by one process of all, at the times of a cron line in UTC. */
  onSchedule(name: string, cron: string, work: () => Promise<void>): Promise<void>
  /** The emails that wait to be sent. */
  emails: EmailQueue
  /** The deliveries that processes of the version before keep. */
  kept: KeptQueue
  stop(): Promise<void>
}

/** The database's time in SQL; in tests, the moved one. */
export const queueNow = sql<Date>`pgboss.job_now()`

const deliveryQueue = 'deliveries'

/** Far above the 30 s of an exchange. */
const expireInSeconds = 3_600

const taskNames: readonly Task['name'][] = ['recovery', 'recover', 'cancel']
const taskOptions = { retryLimit: 1_000, retryDelay: 5, retryBackoff: true, retryDelayMax: 300 } as const

/** Given to tasks at the end: one that needs longer is begun again by another process. Milliseconds. */
const taskGraceMs = 2_000

export type QueueOptions = {
  connectionString: string
  /** Whether this process works (monitors, schedules) or only puts jobs in. */
  works: boolean
  onError: (error: Error) => void
  /** Moves time in tests. Default: the real one. */
  clock?: AttachableClock
  /** Statements' settings for every session, needed by a test clock. */
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
 * What pg-boss does in sessions of its own does not wait for the disk: nobody is promised a claim, and one
 * that a crash of PostgreSQL takes back is made again, as are the end of a task and what is installed at a
 * start. What goes into the queue or leaves it does wait, in the transaction of its cause. And it counts all
 * that waits again and again, for which it shall not have all cores at once. Nor is anything sorted that an index has
 * in order: with statistics from a moment when nothing waited, to read and sort all that waits looks as cheap as a claim
 * of ten along the index.
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
    // These reach pg's pool as they are.
    ...{ onConnect: prepareSession, ...socketGuards },
    superviseIntervalSeconds: 15,
    monitorIntervalSeconds: 15,
    cronWorkerIntervalSeconds: 5,
    cronMonitorIntervalSeconds: 15,
    // A clock is told to each new session without waiting for the answer, which `pg` wants pipeline mode for.
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
    // What pg-boss's fail would leave, but for the flow: see test/queue/handed-back.test.ts.
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
    keepAlive: (claimed) => deliveries.keepAlive(claimed.map(({ claim }) => claim)),
    async claimed(handle, deliveryIds) {
      const ids = deliveryIds.map(uuidOf)
      // Locked whatever their state: a claim passes over a locked job, and one that came first is waited for.
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

/** Has a call of pg-boss work inside our transaction. */
function inside(handle: Handle): BossConnection {
  return fromKysely(handle)
}
