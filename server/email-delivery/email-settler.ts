import { type Db, inTransaction } from '../database/connection.ts'
import { startBatches } from '../lib/batches.ts'
import type { Clock } from '../lib/clock.ts'
import type { ClaimedEmail, FinishedEmail } from '../queue/email-queue.ts'
import type { Queue } from '../queue/queue.ts'
import type { RecipientsForLater } from './email-sender.ts'
import type { RecipientFact } from './outcomes.ts'
import { type RecordMeans, type Remainder, recordFacts } from './record-outcomes.ts'
import { revertSending, revertWaiting, type StartedRecipient } from './sending-state.ts'

/** What came of a part of a claimed email. */
export type Sent = {
  facts: readonly RecipientFact[]
  /** Recipients nothing was sent to, because of us: they are tried again. */
  released: readonly StartedRecipient[]
  /** Recipients that wait for a server that can be used; null: none. */
  waiting: RecipientsForLater | null
  /** The claim, where this was the last part of the email; else null. */
  finished: Finished | null
}

/** The claim of an email, and until when parts of it wait for servers that can be used; null: none does. */
export type Finished = { claimed: ClaimedEmail; waitsUntil: Date | 'in-place' | null }

/** What was sent and waits to be written down. */
export type EmailSettler = {
  add(sent: Sent): void
  /** Milliseconds since it last settled, or found nothing to settle, without an error. */
  idleMs(): number
  /** Ends when all is settled, or at the deadline. Milliseconds, monotonic. */
  stop(deadline: number): Promise<void>
}

export type EmailSettlerOptions = RecordMeans & {
  db: Db
  queue: Queue
  clock: Clock
  intervalMs: number
  /** Told of the emails that are done with for now. */
  onFinished: (emailIds: readonly string[]) => void
  onError: (error: unknown) => void
}

const batchSize = 250
/** Fewer than these wait a moment for more: a transaction for a handful costs as much as one for a hundred. */
const fullBatch = 100
const gatheringMs = 20

/** For how long an email waits that found no room at its destination, or was let go by us. Milliseconds. */
export const parkMs = 5_000
/** The same, where there may be room in a moment. */
export const shortParkMs = 250

/**
 * Writes down what was sent, many at a time. A batch that fails waits here and is written again: what was
 * written already then changes nothing.
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
        await revertSending(trx, released)
        const waiting = batch.flatMap((one) => one.waiting ?? [])
        const [inPlace, others] = [waiting.filter(isInPlace), waiting.filter((one) => !isInPlace(one))]
        await revertSending(trx, recipientsOf(others))
        await revertWaiting(trx, recipientsOf(inPlace), clock.now())
        await queue.emails.finish(trx, finishedAt(finished, { remainders, released, now: clock.now() }))
      })
      onFinished(finished.map(({ claimed }) => claimed.emailId))
    },
  })
}

function isInPlace({ until }: RecipientsForLater): boolean {
  return until === 'in-place'
}

function recipientsOf(waiting: readonly RecipientsForLater[]): StartedRecipient[] {
  return waiting.flatMap(({ recipients }) => recipients)
}

type Outlook = { remainders: readonly Remainder[]; released: readonly StartedRecipient[]; now: Date }

/** When each email is taken up again; null: never, it is done. */
function finishedAt(finished: readonly Finished[], { remainders, released, now }: Outlook): FinishedEmail[] {
  const byId = new Map(remainders.map((remainder) => [remainder.emailId, remainder]))
  const letGo = new Set(released.map(({ emailId }) => emailId))
  const soon = new Date(now.getTime() + parkMs)
  return finished.map(({ claimed, waitsUntil }) => {
    const remainder = byId.get(claimed.emailId)
    if (letGo.has(claimed.emailId)) return { claimed, nextAt: soon }
    if (waitsUntil === 'in-place') return { claimed, nextAt: waitsUntil }
    // Also where others of it found no room: they are looked at again with those that wait.
    if (waitsUntil !== null) return { claimed, nextAt: earlier(waitsUntil, remainder?.nextAt ?? null) }
    // What there was no room for: the part that is done has left some. What waits for a time is found in the second
    // after it, and this shall be found now.
    if (remainder?.anyQueued === true) return { claimed, nextAt: new Date(now.getTime() - 1_000) }
    return { claimed, nextAt: remainder?.nextAt ?? null }
  })
}

function earlier(one: Date, other: Date | null): Date {
  return other === null || one < other ? one : other
}
