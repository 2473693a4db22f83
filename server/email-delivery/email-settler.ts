import { type Db, inTransaction } from '../database/connection.ts'
import { startBatches } from '../lib/batches.ts'
import type { Clock } from '../lib/clock.ts'
import type { ClaimedEmail, FinishedEmail } from '../queue/email-queue.ts'
import type { Queue } from '../queue/queue.ts'
import type { RecipientsForLater } from './email-sender.ts'
import type { RecipientFact } from './recipient-facts.ts'
import { type RecordMeans, type Remainder, recordFacts } from './record-facts.ts'
import { revertWaiting, type StartedRecipient } from './sending-queries.ts'

/** The result of one part of a claimed email: one conversation, or the facts that needed no server. */
export type Sent = {
  facts: readonly RecipientFact[]
  /** Recipients that nothing was sent to for reasons of this service. They are tried again. */
  released: readonly StartedRecipient[]
  /** Recipients that wait until their destination can be used; null: none. */
  waiting: RecipientsForLater | null
  /** The claim if this was the last part of the email, else null. */
  finished: Finished | null
}

/** The claim of an email, and until when recipients wait for an unusable destination; null: none waits. */
export type Finished = { claimed: ClaimedEmail; waitsUntil: Date | 'in-place' | null }

/** Stores the results of sending in batches. */
export type EmailSettler = {
  add(sent: Sent): void
  /** Returns the milliseconds since it last settled, or found nothing to settle, without an error. */
  idleMs(): number
  /** Resolves when everything is settled, or at the deadline (milliseconds on the clock of `performance.now`). */
  stop(deadline: number): Promise<void>
}

export type EmailSettlerOptions = RecordMeans & {
  db: Db
  queue: Queue
  clock: Clock
  intervalMs: number
  /** Called with the ids of emails whose results are stored and whose claims have ended. */
  onFinished: (emailIds: readonly string[]) => void
  onError: (error: unknown) => void
}

const batchSize = 250
/** A smaller batch waits a moment for more: a transaction for a handful costs as much as one for a hundred. */
const fullBatch = 100
const gatheringMs = 20

/** Wait of an email that found no room at its destination, or was released unsent. Milliseconds. */
export const parkMs = 5_000
/** The shorter wait of an email that may find room in a moment. Milliseconds. */
export const shortParkMs = 250

/**
 * Starts storing the results of sending in batches. A batch that fails stays in memory and is stored again. That is
 * safe: results that are stored already change nothing.
 */
export function startEmailSettler(options: EmailSettlerOptions): EmailSettler {
  const { db, queue, clock, intervalMs, onFinished, onError } = options
  return startBatches<Sent>({
    size: batchSize,
    full: fullBatch,
    gatheringMs,
    intervalMs,
    onError,
    async work(batch) {
      const finished = batch.flatMap((one) => one.finished ?? [])
      await inTransaction(db, async (trx) => {
        const remainders = await recordFacts(
          trx,
          options,
          batch.flatMap(({ facts }) => facts),
        )
        const released = batch.flatMap((one) => one.released)
        const waiting = batch.flatMap((one) => one.waiting ?? [])
        const now = clock.now()
        await revertWaiting(trx, [
          ...released.map((one) => ({ ...one, nextAt: now })),
          ...waiting.flatMap(({ recipients, until }) => {
            const nextAt = until === 'in-place' ? now : until
            return recipients.map((one) => ({ ...one, nextAt }))
          }),
        ])
        await queue.emails.finish(trx, finishedAt(finished, { remainders, released, now }))
      })
      onFinished(finished.map(({ claimed }) => claimed.emailId))
    },
  })
}

type Outlook = { remainders: readonly Remainder[]; released: readonly StartedRecipient[]; now: Date }

/** Returns when each email is claimed again; null: never, it is done. */
function finishedAt(finished: readonly Finished[], { remainders, released, now }: Outlook): FinishedEmail[] {
  const byId = new Map(remainders.map((remainder) => [remainder.emailId, remainder]))
  const releasedIds = new Set(released.map(({ emailId }) => emailId))
  const soon = new Date(now.getTime() + parkMs)
  return finished.map(({ claimed, waitsUntil }) => {
    const remainder = byId.get(claimed.emailId)
    if (releasedIds.has(claimed.emailId)) return { claimed, nextAt: soon }
    if (waitsUntil === 'in-place') return { claimed, nextAt: waitsUntil }
    // Recipients of this email that found no room are looked at again at the same time.
    if (waitsUntil !== null) return { claimed, nextAt: earlier(waitsUntil, remainder?.nextAt ?? null) }
    // Other recipients found no room, and the finished part has freed some. The queue finds a due email up to a
    // second late; a time in the past makes it find this one now.
    if (remainder?.anyQueued === true) return { claimed, nextAt: new Date(now.getTime() - 1_000) }
    return { claimed, nextAt: remainder?.nextAt ?? null }
  })
}

function earlier(one: Date, other: Date | null): Date {
  return other === null || one < other ? one : other
}
