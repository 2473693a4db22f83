import { sql } from 'kysely'
import { deleteOldEntries } from '../audit-log/retention.ts'
import { type Db, inTransaction } from '../database/connection.ts'
import { deleteOldEmails } from '../email-delivery/retention.ts'
import type { Clock } from '../lib/clock.ts'
import { deleteOldRequestLogs } from '../request-logs/retention.ts'
import { firstIdAt } from '../shared/ids.ts'
import { deleteOldMessages } from '../stored-messages/retention.ts'
import { deleteOldRecoveries } from '../webhook-delivery/recovery/recovery-rows.ts'
import { deleteOldStatistics } from '../webhook-delivery/statistics-retention.ts'

/*
 * A delivery can be sent again as long as it exists, and needs its event for that. So deliveries are deleted first,
 * then the events that have no delivery left and will not get one. A fan-out creates deliveries of events in the
 * outbox, in the transaction that removes the events from it. A recovery creates deliveries of any event, and locks the
 * event first. So an event can be deleted if it is locked here, is not in the outbox and has no delivery.
 *
 * There is no index of all deliveries by event. To find the deliveries of old events: an id begins with its creation
 * time, and nearly all deliveries are created within half a minute of their events. So they are looked up in that range
 * of ids; the few others are in a partial index.
 */

/** Maximum number of rows deleted by one statement, which holds its locks for some milliseconds. */
const chunkSize = 2_000
/** How far past the retention each call looks for rows to delete. Milliseconds. */
const lookBackMs = 3_600_000
/**
 * How often all older rows are checked too, for rows that were kept because something needed them. Milliseconds. Not at
 * each call: deleted rows are read again until a vacuum removes them.
 */
const thoroughEveryMs = 3_600_000

export type Expired = { events: number; deliveries: number; emails: number }

export type RetentionOptions = {
  db: Db
  clock: Clock
  /** How long events, deliveries, attempts and emails are kept. Milliseconds. */
  retentionMs: number
}

/**
 * Returns a function that deletes rows past their retention, in small transactions and along the primary keys, so that
 * nothing else has to wait; entries of the audit log and of the request logs too, which have retentions of their own.
 * Pending deliveries stay, and so does the event of every delivery that stays. Call the function every few minutes.
 * Rows more than an hour past their retention are checked at the first call, and then once an hour.
 */
export function createRetention({ db, clock, retentionMs }: RetentionOptions): () => Promise<Expired> {
  let thoroughAt = Number.NEGATIVE_INFINITY

  return async () => {
    const now = clock.now().getTime()
    const isThorough = now - thoroughAt >= thoroughEveryMs
    const until = new Date(now - retentionMs)
    const since = new Date(isThorough ? 0 : until.getTime() - lookBackMs)
    const deliveries = await deleteDeliveries(db, { since, until })
    const events = await deleteEvents(db, { since, until })
    const emails = await deleteOldEmails(db, { since, until })
    await deleteOldMessages(db, until)
    await deleteOldStatistics(db)
    await deleteOldRecoveries(db, until)
    await deleteOldEntries(db, new Date(now))
    await deleteOldRequestLogs(db, new Date(now))
    if (isThorough) thoroughAt = now
    return { events, deliveries, emails }
  }
}

/** The creation times of the rows to check. */
type TimeRange = { since: Date; until: Date }

async function deleteDeliveries(db: Db, { since, until }: TimeRange): Promise<number> {
  const bound = firstIdAt('delivery', until)
  let deleted = 0
  for (let after = firstIdAt('delivery', since); ; ) {
    // Locked deliveries are being sent again.
    const { rows } = await sql<{ id: string }>`
      WITH page AS (
        SELECT id FROM deliveries WHERE id > ${after} AND id < ${bound} AND status <> 'pending'
        ORDER BY id LIMIT ${chunkSize} FOR UPDATE SKIP LOCKED
      ), gone AS (
        DELETE FROM deliveries WHERE id = ANY(ARRAY(SELECT id FROM page))
      ), attempts_gone AS (
        DELETE FROM attempts WHERE delivery_id = ANY(ARRAY(SELECT id FROM page))
      )
      SELECT id FROM page
    `.execute(db)
    deleted += rows.length
    if (rows.length < chunkSize) return deleted
    after = rows.at(-1)?.id as string
  }
}

async function deleteEvents(db: Db, { since, until }: TimeRange): Promise<number> {
  const bound = firstIdAt('event', until)
  let deleted = 0
  for (let after = firstIdAt('event', since); ; ) {
    const page = await db
      .selectFrom('events')
      .select('id')
      .where('id', '>', after)
      .where('id', '<', bound)
      .orderBy('id')
      .limit(chunkSize)
      .execute()
    deleted += await deleteUnneeded(
      db,
      page.map(({ id }) => id),
    )
    if (page.length < chunkSize) return deleted
    after = page.at(-1)?.id as string
  }
}

/**
 * Deletes those of the events, given in order, that are not in the outbox and have no delivery, and their positions.
 */
async function deleteUnneeded(db: Db, eventIds: readonly string[]): Promise<number> {
  const [first] = eventIds
  const last = eventIds.at(-1)
  if (first === undefined || last === undefined) return 0
  return inTransaction(db, async (trx) => {
    // A recovery that creates a delivery of an old event keeps the event locked until its commit: locked events stay.
    // The next statement sees what was committed before these locks, and recoveries wait for these locks.
    const locked = await trx
      .selectFrom('events')
      .select('id')
      .where('id', '=', sql<string>`ANY(${eventIds}::text[])`)
      .orderBy('id')
      .forUpdate()
      .skipLocked()
      .execute()
    const ids = locked.map(({ id }) => id)
    // One statement reads one snapshot: an event leaves the outbox in the same commit in which its deliveries appear.
    // EXCEPT reads each row once, whatever number of rows the planner expects.
    const { rows } = await sql`
      WITH gone AS (
        DELETE FROM events WHERE id = ANY(ARRAY(
          SELECT unnest(${ids}::text[])
          EXCEPT SELECT event_id FROM outbox_rows WHERE event_id = ANY(${eventIds}::text[])
          EXCEPT SELECT event_id FROM deliveries
            WHERE id >= 'dlv_' || substr(${first}, 5, 7) AND id < 'dlv_' || substr(${last}, 5, 7) || '~'
          EXCEPT SELECT event_id FROM deliveries
            WHERE event_id = ANY(${eventIds}::text[]) AND substr(id, 5, 7) <> substr(event_id, 5, 7)
        ))
        RETURNING id
      ), positions_gone AS (
        DELETE FROM event_positions WHERE ctid = ANY(ARRAY(
          SELECT p.ctid FROM gone
          -- OFFSET 0 makes the planner look up each position by its key, whatever the statistics say.
          CROSS JOIN LATERAL (
            SELECT ctid, account_id, mode, position FROM event_positions
            WHERE event_id = gone.id OFFSET 0
          ) p
          -- The last position of a mode stays: after a quiet time longer than the retention, its poller continues after
          -- it.
          WHERE EXISTS (
            SELECT FROM event_positions
            WHERE (account_id, mode, position) > (p.account_id, p.mode, p.position)
              AND (account_id, mode) <= (p.account_id, p.mode)
            OFFSET 0
          )
        ))
      )
      SELECT FROM gone
    `.execute(trx)
    return rows.length
  })
}
