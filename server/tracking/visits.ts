import { sql } from 'kysely'
import type { Db } from '../database/connection.ts'
import { startLoop } from '../lib/loop.ts'
import { isTooSoon } from './automated-visits.ts'
import type { Visit } from './tracking.ts'

/** Opens and clicks on their way into the database, off the path of the requests that brought them. */
export type VisitRecorder = {
  /** Never blocks and never throws. */
  add(visit: Visit): void
  /** Writes what waits, and ends. What cannot be written is dropped. */
  stop(): Promise<void>
}

export type VisitRecorderOptions = {
  db: Db
  /** Writes visits down, all or none. */
  record: (visits: readonly Visit[]) => Promise<unknown>
  onError: (error: unknown) => void
  /** Told how many were not recorded, since more came than can be written. */
  onDropped: (count: number) => void
  /** Milliseconds between batches. Default 1,000. */
  intervalMs?: number
}

/** Visits in one transaction. */
const batchSize = 500
/** Visits that wait; what comes beyond is dropped. */
export const maxWaiting = 10_000

/**
 * Writes visits down in batches. The same visit again before it is written counts once: whoever fetches a
 * pixel a thousand times a second makes no thousand events of it.
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

/** The visits with those marked automated that came too soon to be a person's. */
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
