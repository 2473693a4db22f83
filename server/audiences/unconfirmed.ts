import { sql } from 'kysely'
import { type Db, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { Outbox } from '../outbox/append.ts'
import { confirmationLimits } from './confirmation.ts'

/** Contacts that one transaction deletes: it holds their locks, and writes an event for each. */
const chunkSize = 1_000
/** Contacts that one call deletes at most. */
export const unconfirmedAtOnce = 100_000

export type UnconfirmedOptions = { db: Db; clock: Clock; outbox: Outbox }

/**
 * Deletes contacts that are `pending` 30 days after the person was last asked to confirm, or after they were added where
 * nothing could be sent, in small transactions. Emits `contact.deleted` for each. The people stay: the account may have
 * added them for something else. Call it every minute; several processes may do it at the same time. Returns how many.
 */
export async function deleteUnconfirmed({ db, clock, outbox }: UnconfirmedOptions): Promise<number> {
  const before = new Date(clock.now().getTime() - confirmationLimits.pendingMs)
  let deleted = 0
  let count = chunkSize
  while (count === chunkSize && deleted < unconfirmedAtOnce) {
    count = await deleteNext(db, outbox, before)
    deleted += count
  }
  return deleted
}

function deleteNext(db: Db, outbox: Outbox, before: Date): Promise<number> {
  return inTransaction(db, async (trx) => {
    // A locked contact is being confirmed, asked again or deleted. Nothing is waited for, so that no two block each other.
    const { rows } = await sql<{ account_id: string; audience_id: string; subscriber_id: string }>`
      WITH page AS MATERIALIZED (
        SELECT ctid FROM contacts
        WHERE status = 'pending' AND coalesce(confirmation_sent_at, created_at) < ${before}
        ORDER BY coalesce(confirmation_sent_at, created_at) LIMIT ${chunkSize} FOR UPDATE SKIP LOCKED
      )
      DELETE FROM contacts WHERE ctid = ANY(ARRAY(SELECT ctid FROM page))
      RETURNING account_id, audience_id, subscriber_id
    `.execute(trx)
    for (const [accountId, gone] of Map.groupBy(rows, (row) => row.account_id)) {
      // Contacts belong to both modes, which both get the event.
      await outbox.append(
        trx,
        { accountId, mode: 'live' },
        gone.map(({ audience_id: audienceId, subscriber_id: subscriberId }) => ({
          type: 'contact.deleted',
          data: { subscriberId, audienceId },
        })),
      )
    }
    return rows.length
  })
}
