import { sql } from 'kysely'
import { type Db, inTransaction } from '../database/connection.ts'
import type { Queue } from '../queue/queue.ts'

const chunkSize = 1_000

/**
 * Finds waiting emails without a job that will run, and creates their jobs. There should be none, because an email
 * and its job are written in one transaction. Returns how many there were.
 */
export async function reconcileEmails({ db, queue }: { db: Db; queue: Queue }): Promise<number> {
  let mended = 0
  for (let after = ''; ; ) {
    const { rows: chunk } = await sql<{ id: string }>`
      SELECT id FROM emails WHERE status IN ('scheduled', 'queued', 'sending') AND id > ${after}
      ORDER BY id LIMIT ${chunkSize}
    `.execute(db)
    const ids = chunk.map(({ id }) => id)
    const suspects = await queue.emails.missing(db, ids)
    if (suspects.length > 0) mended += await mend({ db, queue }, suspects)
    if (chunk.length < chunkSize) return mended
    after = ids.at(-1) as string
  }
}

type EmailWithoutJob = { id: string; account_id: string; campaign_id: string | null; due_at: Date | null }

/** Checks again with the rows locked, because results may have been stored meanwhile, and creates the missing jobs. */
async function mend({ db, queue }: { db: Db; queue: Queue }, emailIds: readonly string[]): Promise<number> {
  return inTransaction(db, async (trx) => {
    const { rows } = await sql<EmailWithoutJob>`
      SELECT e.id, e.account_id, e.campaign_id, greatest(e.scheduled_at, r.next_attempt_at) AS due_at
      FROM emails e, LATERAL (
        SELECT min(next_attempt_at) AS next_attempt_at FROM email_recipients
        WHERE email_id = e.id AND status IN ('queued', 'sending', 'deferred')
      ) r
      WHERE e.id = ANY(${emailIds}::text[]) AND e.status IN ('scheduled', 'queued', 'sending')
      ORDER BY e.id FOR UPDATE OF e
    `.execute(trx)
    const ids = rows.map(({ id }) => id)
    const missing = new Set(await queue.emails.missing(trx, ids))
    const lost = rows.filter(({ id }) => missing.has(id))
    // An ended job of an unfinished email would block a new one.
    await queue.emails.remove(trx, [...missing])
    await queue.emails.put(
      trx,
      lost.map(({ id, account_id, campaign_id, due_at }) => ({
        emailId: id,
        accountId: account_id,
        dueAt: due_at,
        // Of a lost job nothing else is known: a confirmation in bulk becomes single.
        lane: campaign_id === null ? ('single' as const) : ('bulk' as const),
      })),
    )
    return lost.length
  })
}
