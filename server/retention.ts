import { sql } from 'kysely'
import type { Clock } from './clock.ts'
import type { Db } from './database/connection.ts'
import { firstIdAt } from './ids.ts'
import { deleteOldEmails } from './mail/retention.ts'

/*
 * A delivery can be sent again for as long as it is there, and needs its event for that. So deliveries
 * go first, and then the events that have none left and are not on their way to get any. Deliveries
 * are made of events in the outbox alone, in the transaction that takes the events out of it: once
 * an event has neither, it has neither for ever, and can go whatever happens beside.
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
/** Counted requests are of no use once their window is over. */
const windowAgeMs = 3_600_000

export type Expired = { events: number; deliveries: number; emails: number }

export type RetentionOptions = {
  db: Db
  clock: Clock
  /** How long events, deliveries, attempts and emails are kept. Milliseconds. */
  retentionMs: number
}

/**
 * Answers a function that deletes what is past its retention, in small transactions and along the
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
    await db
      .deleteFrom('rate_limit_windows')
      .where('window_start', '<', new Date(now - windowAgeMs))
      .execute()
    if (isThorough) thoroughAt = now
    return { events, deliveries, emails }
  }
}

/** When the rows were made that are looked at. */
type Span = { since: Date; until: Date }

async function deleteDeliveries(db: Db, { since, until }: Span): Promise<number> {
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

async function deleteEvents(db: Db, { since, until }: Span): Promise<number> {
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

/** Deletes those of the events, given in order, that are not in the outbox and have no delivery. */
async function deleteUnneeded(db: Db, eventIds: readonly string[]): Promise<number> {
  const [first] = eventIds
  const last = eventIds.at(-1)
  if (first === undefined || last === undefined) return 0
  // One statement, so that it sees one moment: an event leaves the outbox as its deliveries appear. And
  // EXCEPT, which takes each row once, whatever the planner believes of how many there are.
  const { numAffectedRows } = await sql`
    DELETE FROM events WHERE id = ANY(ARRAY(
      SELECT unnest(${eventIds}::text[])
      EXCEPT SELECT event_id FROM outbox WHERE event_id = ANY(${eventIds}::text[])
      EXCEPT SELECT event_id FROM deliveries
        WHERE id >= 'dlv_' || substr(${first}, 5, 7) AND id < 'dlv_' || substr(${last}, 5, 7) || '~'
      EXCEPT SELECT event_id FROM deliveries
        WHERE event_id = ANY(${eventIds}::text[]) AND substr(id, 5, 7) <> substr(event_id, 5, 7)
    ))
  `.execute(db)
  return Number(numAffectedRows ?? 0n)
}
