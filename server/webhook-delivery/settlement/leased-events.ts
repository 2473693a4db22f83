import { sql } from 'kysely'
import { plainArray } from '../../database/arrays.ts'
import type { Db } from '../../database/connection.ts'
import { startBatches } from '../../lib/batches.ts'
import type { Queue } from '../../queue/queue.ts'
import { uuidOf } from '../../shared/ids.ts'
import type { HeldDelivery } from '../scheduling/deliveries-in-hand.ts'
import { finishEvents } from './finish-events.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Settlement } from './settlement.ts'

/*
 * The events that are leased to this process, from the lease until their deliveries are written down.
 *
 *   take ──▶ open ── all attempts are over, or one goes back, or 300 ms ──▶ written: the event leaves the outbox
 *
 * Until then the row in the outbox stands for the deliveries. So an event whose attempts are over soon costs one
 * statement, which it shares with others. What is not over by then is written as a delivery with a job that this process
 * has claimed, and settled like all others.
 */

/** Open events are looked at so often, and written at the third look at the latest. Milliseconds. */
const lookMs = 100
const looksAtMost = 3
/** Events written by one statement. */
const batchSize = 500
/** Fewer events than these wait a moment for more: a statement for a handful costs as much as one for many. */
const fullBatch = 250
const gatheringMs = 25

export type LeasedEvents = {
  /** Takes an event over that is not open here. */
  take(event: LeasedEvent): HeldDelivery[]
  /** Whether an event is open here: until what came of it is written. */
  isOpen(eventId: string): boolean
  /** Gives events back that are not taken over: anyone may take them from the outbox. */
  release(eventIds: readonly string[]): void
  /** An attempt is over. False: its delivery is not of an event that is open here. */
  end(held: HeldDelivery, settlement: Settlement): boolean
  /** A delivery that is not attempted after all is to wait in the queue. False: as above. */
  putBack(held: HeldDelivery): boolean
  /** Whether its attempt is over, or it was put back, and that is not written down yet. */
  hasEnd(held: HeldDelivery): boolean
  /** How many deliveries of open events there are, and events without any. */
  size(): number
  /** Milliseconds since it last wrote, or had nothing to write, without an error. */
  idleMs(): number
  /** Writes what is left, until the deadline. Milliseconds, monotonic. */
  stop(deadline: number): Promise<void>
}

export type LeasedEventsOptions = {
  db: Db
  queue: Queue
  /** Names this process in the outbox. */
  lease: string
  /** Milliseconds between attempts at writing what could not be written. */
  intervalMs: number
  onError: (error: unknown) => void
  /** Told of deliveries that are written down with their attempts. */
  onSettled: (held: readonly HeldDelivery[]) => void
  /** Told of deliveries that wait in the queue now. */
  onQueued: (held: readonly HeldDelivery[]) => void
  /** Called for a delivery that ended, or was put back, while it was being written as claimed: it is settled or handed back. */
  onLate: (held: HeldDelivery, end: Settlement | 'queued') => void
  /** Told when events were given back. */
  onReleased: () => void
}

type Part = { held: HeldDelivery; open: Open; end: Settlement | 'queued' | null }
type Open = { event: LeasedEvent; parts: Part[]; unended: number; isDue: boolean; looks: number }

export function startLeasedEvents(options: LeasedEventsOptions): LeasedEvents {
  const { db, lease, intervalMs, onError, onSettled, onQueued, onLate, onReleased } = options
  /** By id, the oldest first. */
  const open = new Map<string, Open>()
  const parts = new Map<HeldDelivery, Part>()
  let timer: NodeJS.Timeout | undefined
  let isStopping = false

  const finishing = startBatches<Open>({
    size: batchSize,
    full: fullBatch,
    gatheringMs,
    intervalMs,
    onError,
    work: finish,
  })
  const releasing = startBatches<string>({
    size: batchSize,
    full: 1,
    gatheringMs: 0,
    intervalMs,
    onError,
    work: giveBack,
  })

  function makeDue(one: Open): void {
    if (one.isDue) return
    one.isDue = true
    finishing.add(one)
  }

  function look(): void {
    timer = undefined
    for (const one of open.values()) {
      one.looks += 1
      if (one.looks >= looksAtMost) makeDue(one)
    }
    if (open.size > 0) lookLater()
  }

  function lookLater(): void {
    timer ??= setTimeout(look, lookMs)
    timer.unref()
  }

  async function finish(batch: readonly Open[]): Promise<void> {
    const written = batch.map((one) => ({ one, ends: one.parts.map(({ end }) => end ?? ('claimed' as const)) }))
    const ours = await finishEvents(
      options,
      lease,
      written.map(({ one, ends }) => ({
        event: one.event,
        deliveries: one.parts.map(({ held }, index) => ({ delivery: held.delivery, end: ends[index] ?? 'claimed' })),
      })),
    )
    const settled: HeldDelivery[] = []
    const queued: HeldDelivery[] = []
    for (const { one, ends } of written) {
      open.delete(one.event.id)
      for (const [index, { held, end }] of one.parts.entries()) {
        parts.delete(held)
        held.claimed = { deliveryId: held.delivery.id, claim: { id: uuidOf(held.delivery.id), retryCount: 0 } }
        // An event that is not leased to this process any more may have been written by a try whose answer was lost.
        // Then what ended since is still to be settled; and else no delivery is found for it.
        const isWritten = ours.has(one.event.id) && ends[index] === end
        if (end === null) continue
        if (end === 'queued' && isWritten) queued.push(held)
        else if (end !== 'queued' && isWritten) settled.push(held)
        else onLate(held, end)
      }
    }
    if (queued.length > 0) onQueued(queued)
    onSettled(settled)
  }

  async function giveBack(eventIds: readonly string[]): Promise<void> {
    await sql`
      UPDATE outbox_rows SET lease = NULL, leased_until = '-infinity'
      WHERE event_id = ANY(${plainArray(eventIds)}::text[]) AND lease = ${lease}::uuid
    `.execute(db)
    onReleased()
  }

  return {
    take(event) {
      const now = performance.now()
      const { deliveries } = event
      const one: Open = { event, parts: [], unended: deliveries.length, isDue: false, looks: 0 }
      one.parts = deliveries.map((delivery) => ({
        held: { delivery, claimed: null, since: now, request: null },
        open: one,
        end: null,
      }))
      open.set(event.id, one)
      for (const part of one.parts) parts.set(part.held, part)
      if (one.unended === 0) makeDue(one)
      else lookLater()
      return one.parts.map(({ held }) => held)
    },
    isOpen: (eventId) => open.has(eventId),
    release(eventIds) {
      if (!isStopping) for (const id of eventIds) releasing.add(id)
      // A transaction has committed after the worker had stopped.
      else if (eventIds.length > 0) giveBack(eventIds).catch(onError)
    },
    end(held, settlement) {
      const part = parts.get(held)
      if (part === undefined) return false
      part.end = settlement
      part.open.unended -= 1
      if (part.open.unended === 0) makeDue(part.open)
      return true
    },
    putBack(held) {
      const part = parts.get(held)
      if (part === undefined) return false
      part.end = 'queued'
      part.open.unended -= 1
      makeDue(part.open)
      return true
    },
    hasEnd: (held) => (parts.get(held)?.end ?? null) !== null,
    size: () => Math.max(parts.size, open.size),
    idleMs: () => Math.max(finishing.idleMs(), releasing.idleMs()),
    async stop(deadline) {
      isStopping = true
      clearTimeout(timer)
      for (const one of open.values()) makeDue(one)
      await finishing.stop(deadline)
      await releasing.stop(deadline)
    },
  }
}
