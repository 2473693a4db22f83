import { sql } from 'kysely'
import { type Db, inTransaction } from '../database/connection.ts'
import { deleteOldEmails } from '../email-delivery/retention.ts'
import type { Clock } from '../lib/clock.ts'
import { firstIdAt } from '../shared/ids.ts'
import { deleteOldMessages } from '../stored-messages/retention.ts'
import { deleteOldRecoveries } from '../webhook-delivery/recovery/recovery-queries.ts'
import { deleteOldStatistics } from '../webhook-delivery/statistics-retention.ts'

/*
 * A delivery can be sent again for as long as it is there, and needs its event for that. So deliveries
 * go first, and then the events that have none left and are not on their way to get any. A fan-out makes
 * deliveries of events in the outbox, in the transaction that takes the events out of it. A recovery makes
 * deliveries of any event, and locks the event before. So an event that is locked here, is not in the
 * outbox and has no delivery can go.
 *
 * To find the deliveries of old events without an index of all deliveries by event: an id begins with
 * the time it was made at, and nearly all deliveries are made in the same half a minute as their
 * events. So they are looked for there, and the few others are in an index of their own.
 */

/** Rows dealt with by one statement: each holds its locks for some milliseconds. */
const chunkSize = 2_000
/** How far past its retention is looked for what to delete, each time. */
const lookBackMs = 3_600_000
/**
 * How often all that is older is looked through too: for what was kept because something needed it. Not
 * each time, since what was deleted is walked over again until a vacuum has been there.
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
 * Returns a function that deletes what is past its retention, in small transactions and along the
 * primary keys, so that nothing else waits. What is still pending stays, and the event of every
 * delivery that stays. To be called every few minutes: what is more than an hour past its retention
 * is looked for at the first call, and then once an hour.
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
    if (isThorough) thoroughAt = now
    return { events, deliveries, emails }
  }
}

/** When the rows were made that are looked at. */
type TimeRange = { since: Date; until: Date }

async function deleteDeliveries(db: Db, { since, until }: TimeRange): Promise<number> {
  const bound = firstIdAt('delivery', until)
  let deleted = 0
  for (let after = firstIdAt('delivery', since); ; ) {
    // What is locked is being sent again.
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

/** Deletes those of the events, given in order, that are not in the outbox and have no delivery, with their positions. */
async function deleteUnneeded(db: Db, eventIds: readonly string[]): Promise<number> {
  const [first] = eventIds
  const last = eventIds.at(-1)
  if (first === undefined || last === undefined) return 0
  return inTransaction(db, async (trx) => {
    // A recovery that makes a delivery of an old event has the event locked until its commit: what is locked stays.
    // The next statement sees what was committed before these locks were taken, and holds back recoveries after it.
    const locked = await trx
      .selectFrom('events')
      .select('id')
      .where('id', '=', sql<string>`ANY(${eventIds}::text[])`)
      .orderBy('id')
      .forUpdate()
      .skipLocked()
      .execute()
    const ids = locked.map(({ id }) => id)
    // One statement, so that it sees one moment: an event leaves the outbox as its deliveries appear. And
    // EXCEPT, which takes each row once, whatever the planner believes of how many there are.
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
          -- One by one along the keys, whatever the statistics say.
          CROSS JOIN LATERAL (
            SELECT ctid, account_id, mode, position FROM event_positions
            WHERE event_id = gone.id OFFSET 0
          ) p
          -- The last of a mode stays: after a quiet time longer than the retention, its poller goes on after it.
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
