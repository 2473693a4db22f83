import { sql } from 'kysely'
import { fromKysely, type PgBoss } from 'pg-boss'
import type { Handle, Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import { idOfUuid, uuidOf } from '../shared/ids.ts'
import type { Lane } from '../shared/lanes.ts'
import { createTurns } from './fair-queuing.ts'
import { type JobClaim, openJobs, type QueueDepth, queueTime } from './jobs.ts'
import { freshRange, lowestSingle, priorityOfRetry, rangeOfDueRetries } from './priority-ranges.ts'

/** An email that this process has claimed, and must finish or put back. */
export type ClaimedEmail = {
  emailId: string
  claim: JobClaim
}

/**
 * A claimed email and the time of its next attempt. Null: never. `in-place`: it is put back as if it had not been
 * claimed.
 */
export type FinishedEmail = { claimed: ClaimedEmail; nextAt: Date | 'in-place' | null }

/** An email to put into the queue. */
export type QueuedEmail = {
  emailId: string
  /** Accounts take turns: see fair-queuing.ts. */
  accountId: string
  /** Earliest time of the first attempt. Null: at once. */
  dueAt: Date | null
  /** Default: `single`. */
  lane?: Lane
}

/**
 * The jobs of emails, in pg-boss. An email has at most one job, whose id is the UUID inside the email's id, so that two
 * workers never process the same email.
 */
export type EmailQueue = {
  /** Puts emails into the queue, in the transaction that stores them. Fails if an email is in it already. */
  put(trx: Trx, emails: readonly QueuedEmail[]): Promise<void>
  /** Removes emails from the queue, whatever the state of their jobs. Emails that are not in it are skipped. */
  remove(trx: Trx, emailIds: readonly string[]): Promise<void>
  /** Claims up to `limit` emails of a lane: new ones (`fresh`), or those whose time has come (`due`). */
  claim(what: 'fresh' | 'due', lane: Lane, limit: number): Promise<ClaimedEmail[]>
  /** Sends a heartbeat for claimed emails. Call it every few seconds. */
  keepAlive(claimed: readonly ClaimedEmail[]): Promise<void>
  /**
   * Ends claims in the caller's transaction: emails leave the queue, wait in their lane for their next time, or are put
   * back where they were. A claim that has lapsed changes nothing: another worker owns the email now.
   */
  finish(trx: Trx, finished: readonly FinishedEmail[]): Promise<void>
  /** Returns those of `emailIds` without a job that will run. */
  missing(handle: Handle, emailIds: readonly string[]): Promise<string[]>
  depth(): Promise<QueueDepth>
}

const emailQueue = 'emails'

/** Far longer than the longest conversations with many servers. */
const expireInSeconds = 4 * 3_600

export async function openEmailQueue(boss: PgBoss): Promise<EmailQueue> {
  const jobsOfEmails = await openJobs(boss, { name: emailQueue, expireInSeconds })
  const { table: jobs } = jobsOfEmails
  const turns = { single: createTurns('single'), bulk: createTurns('bulk') }

  function priority({ accountId, dueAt, lane = 'single' }: Omit<QueuedEmail, 'emailId'>, now: Date): number {
    return dueAt === null ? turns[lane].next(accountId, now) : priorityOfRetry(dueAt, lane)
  }

  return {
    async put(trx, emails) {
      if (emails.length === 0) return
      const at = new Date()
      // The row that pg-boss's insert would write, but as a prepared statement, sent without waiting for the result:
      // see test/queue/put-emails.test.ts.
      const insertion = sql`
        INSERT INTO ${jobs} (
          id, name, priority, start_after, created_on, keep_until, expire_seconds, deletion_seconds, retry_limit,
          retry_delay, retry_backoff, retry_delay_max, policy, dead_letter, heartbeat_seconds
        )
        SELECT j.id, q.name, j.priority, coalesce(j.due_at, n.now), n.now,
          coalesce(j.due_at, n.now) + make_interval(secs => q.retention_seconds), q.expire_seconds, q.deletion_seconds,
          q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max, q.policy, q.dead_letter, q.heartbeat_seconds
        FROM (SELECT pgboss.job_now() AS now OFFSET 0) n, pgboss.queue q, unnest(
          ${emails.map(({ emailId }) => uuidOf(emailId))}::uuid[],
          ${emails.map((email) => priority(email, at))}::int[],
          ${emails.map(({ dueAt }) => dueAt)}::timestamptz[]
        ) AS j (id, priority, due_at)
        WHERE q.name = ${emailQueue}
      `
      await executePrepared(trx, { name: 'put_emails', sendsWithNext: true }, insertion)
    },
    async remove(trx, emailIds) {
      if (emailIds.length === 0) return
      await boss.deleteJob(emailQueue, emailIds.map(uuidOf), { db: fromKysely(trx) })
    },
    async claim(what, lane, limit) {
      const range = what === 'fresh' ? freshRange(lane) : rangeOfDueRetries(await queueTime(boss), lane)
      const claims = await jobsOfEmails.claim(range, limit)
      // Nothing waits any more, so no account owes turns to others.
      if (what === 'fresh' && claims.length < limit) turns[lane].forget()
      return claims.map((claim) => ({ emailId: idOfUuid('email', claim.id), claim }))
    },
    async keepAlive(claimed) {
      await jobsOfEmails.keepAlive(claimed.map(({ claim }) => claim))
    },
    async finish(trx, finished) {
      if (finished.length === 0) return
      const ids = finished.map(({ claimed }) => claimed.claim.id)
      const times = finished.map(({ nextAt }) => (nextAt === 'in-place' ? null : nextAt))
      await sql`
        WITH input AS (
          SELECT * FROM unnest(
            ${ids}::uuid[],
            ${finished.map(({ claimed }) => claimed.claim.retryCount)}::int[],
            ${times}::timestamptz[],
            ${times.map((at) => (at === null ? null : priorityOfRetry(at, 'single')))}::int[],
            ${times.map((at) => (at === null ? null : priorityOfRetry(at, 'bulk')))}::int[],
            ${finished.map(({ nextAt }) => nextAt === 'in-place')}::bool[]
          ) AS i (id, retry_count, next_at, single, bulk, in_place)
        ), waiting AS (
          UPDATE ${jobs} j SET
            state = 'created', start_after = coalesce(i.next_at, j.start_after),
            priority = coalesce(CASE WHEN j.priority >= ${lowestSingle} THEN i.single ELSE i.bulk END, j.priority),
            heartbeat_on = NULL
          FROM input i
          WHERE j.name = ${emailQueue} AND j.id = ANY(${ids}::uuid[]) AND j.id = i.id
            AND (i.next_at IS NOT NULL OR i.in_place)
            AND j.state = 'active' AND j.retry_count = i.retry_count
        )
        DELETE FROM ${jobs} j USING input i
        WHERE j.name = ${emailQueue} AND j.id = ANY(${ids}::uuid[]) AND j.id = i.id AND i.next_at IS NULL
          AND NOT i.in_place AND j.state = 'active' AND j.retry_count = i.retry_count
      `.execute(trx)
    },
    missing: jobsOfEmails.missing,
    depth: jobsOfEmails.depth,
  }
}
