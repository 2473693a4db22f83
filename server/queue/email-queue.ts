import { sql } from 'kysely'
import { fromKysely, type PgBoss } from 'pg-boss'
import type { Handle, Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import { idOfUuid, uuidOf } from '../shared/ids.ts'
import { createTurns } from './fair-queuing.ts'
import { type JobClaim, openJobs, type QueueDepth, queueTime } from './jobs.ts'
import { freshRange, priorityOfRetry, rangeOfDueRetries } from './priority-ranges.ts'

/** An email that this process has claimed, and must finish or put back. */
export type ClaimedEmail = {
  emailId: string
  claim: JobClaim
}

/** A claimed email, and when it is taken up again; null: never. `in-place`: as if it had not been claimed. */
export type FinishedEmail = { claimed: ClaimedEmail; nextAt: Date | 'in-place' | null }

/** An email to be put in the queue. */
export type QueuedEmail = {
  emailId: string
  /** Emails of one account take turns with those of the others. */
  accountId: string
  /** Not before this time. Null: at once. */
  dueAt: Date | null
}

/**
 * The jobs of emails, in pg-boss. An email has at most one job, whose id is the UUID inside its own, so
 * that no two workers are ever at the same email.
 */
export type EmailQueue = {
  /** Puts emails in, in the transaction that stores them. If one is in already, `trx` fails. */
  put(trx: Trx, emails: readonly QueuedEmail[]): Promise<void>
  /** Takes emails out, whatever the state of their jobs. Those that are not in are passed over. */
  remove(trx: Trx, emailIds: readonly string[]): Promise<void>
  /** Claims up to `limit` emails: of those due at once, or of those whose time has come. */
  claim(what: 'fresh' | 'due', limit: number): Promise<ClaimedEmail[]>
  /** Says that claimed emails are still being worked on; needed every few seconds. */
  keepAlive(claimed: readonly ClaimedEmail[]): Promise<void>
  /**
   * Ends claims in a transaction of the caller's: emails leave the queue, or, with a time, wait for it, or are put
   * back where they were. A claim that lapsed meanwhile changes nothing: the email is another worker's.
   */
  finish(trx: Trx, finished: readonly FinishedEmail[]): Promise<void>
  /** Of `emailIds`, those that have no job that will ever run. */
  missing(handle: Handle, emailIds: readonly string[]): Promise<string[]>
  depth(): Promise<QueueDepth>
}

const emailQueue = 'emails'

/** Far above the longest conversations with many servers. */
const expireInSeconds = 4 * 3_600

export async function openEmailQueue(boss: PgBoss): Promise<EmailQueue> {
  const jobsOfEmails = await openJobs(boss, { name: emailQueue, expireInSeconds })
  const { table: jobs } = jobsOfEmails
  const turns = createTurns()

  function priority({ accountId, dueAt }: Omit<QueuedEmail, 'emailId'>, now: Date): number {
    return dueAt === null ? turns.next(accountId, now) : priorityOfRetry(dueAt)
  }

  return {
    async put(trx, emails) {
      if (emails.length === 0) return
      const at = new Date()
      // What pg-boss's insert would leave, but prepared, and without waiting for it: see test/queue/put-emails.test.ts.
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
    async claim(what, limit) {
      const range = what === 'fresh' ? freshRange : rangeOfDueRetries(await queueTime(boss))
      const claims = await jobsOfEmails.claim(range, limit)
      // Nothing waits any more, so nobody owes anybody a turn.
      if (what === 'fresh' && claims.length < limit) turns.forget()
      return claims.map((claim) => ({ emailId: idOfUuid('email', claim.id), claim }))
    },
    keepAlive: (claimed) => jobsOfEmails.keepAlive(claimed.map(({ claim }) => claim)),
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
            ${times.map((at) => (at === null ? null : priorityOfRetry(at)))}::int[],
            ${finished.map(({ nextAt }) => nextAt === 'in-place')}::bool[]
          ) AS i (id, retry_count, next_at, priority, in_place)
        ), waiting AS (
          UPDATE ${jobs} j SET
            state = 'created', start_after = coalesce(i.next_at, j.start_after),
            priority = coalesce(i.priority, j.priority), heartbeat_on = NULL
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
