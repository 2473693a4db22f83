import { sql } from 'kysely'
import type { Db } from '../database/connection.ts'
import { startLoop } from '../lib/polling-loop.ts'
import { isTooSoon } from './automated-visits.ts'
import type { Visit } from './tracking.ts'

/** Stores opens and clicks in the background, so that requests do not wait for the database. */
export type VisitRecorder = {
  /** Queues a visit. Never blocks and never throws. */
  add(visit: Visit): void
  /** Stores the waiting visits, then stops. Visits that cannot be stored are dropped. */
  stop(): Promise<void>
}

export type VisitRecorderOptions = {
  db: Db
  /** Stores visits atomically. */
  record: (visits: readonly Visit[]) => Promise<unknown>
  onError: (error: unknown) => void
  /** Called with the number of visits that were dropped because too many were waiting. */
  onDropped: (count: number) => void
  /** Milliseconds between batches. Default 1,000. */
  intervalMs?: number
}

/** Maximum visits in one transaction. */
const batchSize = 500
/** Maximum waiting visits. Further visits are dropped. */
export const maxWaiting = 10_000

/**
 * Starts storing visits in batches. A visit that repeats before it is stored counts once, so that fetching a pixel a
 * thousand times a second does not create a thousand events.
 */
export function startVisitRecorder(options: VisitRecorderOptions): VisitRecorder {
  const { db, record, onError, onDropped, intervalMs = 1_000 } = options
  const waiting = new Map<string, Visit>()
  let dropped = 0

  async function writeBatch(): Promise<boolean> {
    const batch = [...waiting.entries().take(batchSize)]
    if (batch.length > 0) {
      await record(
        await judged(
          db,
          batch.map(([, visit]) => visit),
        ),
      )
      for (const [key] of batch) waiting.delete(key)
    }
    if (dropped > 0) {
      onDropped(dropped)
      dropped = 0
    }
    return waiting.size > 0
  }

  const loop = startLoop({ intervalMs, onError, run: writeBatch })

  return {
    add(visit) {
      const key = keyOf(visit)
      if (waiting.has(key)) return
      if (waiting.size >= maxWaiting) dropped++
      else waiting.set(key, visit)
    },
    async stop() {
      await loop.stop()
      try {
        let more = true
        while (more) more = await writeBatch()
      } catch (error) {
        onError(error)
        onDropped(waiting.size + dropped)
      }
    },
  }
}

function keyOf(visit: Visit): string {
  const { kind, emailId, position, automated } = visit
  return `${emailId} ${position} ${automated} ${kind === 'clicked' ? visit.link : ''}`
}

/** Returns the visits, with clicks marked as automated if they came too soon for a person. */
async function judged(db: Db, visits: readonly Visit[]): Promise<Visit[]> {
  const clicks = visits.filter(({ kind, automated }) => kind === 'clicked' && !automated)
  if (clicks.length === 0) return [...visits]
  const { rows } = await sql<{ email_id: string; position: number; accepted_at: Date }>`
    SELECT email_id, position, accepted_at FROM email_recipients
    WHERE email_id = ANY(${clicks.map(({ emailId }) => emailId)}::text[]) AND accepted_at IS NOT NULL
  `.execute(db)
  const acceptedAt = new Map(rows.map((row) => [`${row.email_id} ${row.position}`, row.accepted_at]))
  return visits.map((visit) =>
    visit.kind === 'clicked' && isTooSoon(visit.at, acceptedAt.get(`${visit.emailId} ${visit.position}`) ?? null)
      ? { ...visit, automated: true }
      : visit,
  )
}
