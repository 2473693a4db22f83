import { sql } from 'kysely'
import { plainArray } from '../../database/arrays.ts'
import type { Db } from '../../database/connection.ts'
import { startBatches } from '../../lib/batches.ts'
import type { Queue } from '../../queue/queue.ts'
import { uuidOf } from '../../shared/ids.ts'
import type { HeldDelivery } from '../scheduling/deliveries-in-hand.ts'
import { finishEvents } from './finish-events.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Settlement } from './settlement-types.ts'

/*
 * Holds the events that are leased to this process, from the lease until their deliveries are written.
 *
 *   take ──▶ open ── all attempts are over, or one is put back, or 300 ms ──▶ written: the event leaves the outbox
 *
 * Until then the outbox row stands for the deliveries. So an event whose attempts are over soon costs one statement,
 * shared with other events. A delivery that is not over by then is written as pending, with a job that this process has
 * claimed, and is settled like any other.
 */

/** Open events are checked at this interval, and written at the third check at the latest. Milliseconds. */
const lookMs = 100
const maxLooks = 3
/** Maximum number of events written by one statement. */
const batchSize = 500
/** Smaller batches wait `gatheringMs` for more: a statement for a few events costs as much as one for many. */
const fullBatch = 250
const gatheringMs = 25

export type LeasedEvents = {
  /** Takes over an event that is not open yet, and returns its deliveries. */
  take(event: LeasedEvent): HeldDelivery[]
  /** Returns true while an event is open: taken, and not yet written. */
  isOpen(eventId: string): boolean
  /** Gives up the lease of events that were not taken over, so that the fan-out of any process can take them. */
  release(eventIds: readonly string[]): void
  /** Records the result of an attempt. Returns false if its delivery does not belong to an open event. */
  end(held: HeldDelivery, settlement: Settlement): boolean
  /**
   * Lets a delivery wait in the queue because it is not attempted. Returns false if it does not belong to an open
   * event.
   */
  putBack(held: HeldDelivery): boolean
  /** Returns true if the delivery has a result or was put back, and that is not written yet. */
  hasEnd(held: HeldDelivery): boolean
  /** Returns the number of open events without deliveries. The scheduler bounds the deliveries of all others. */
  withoutDeliveries(): number
  /** Returns the milliseconds since it last wrote, or had nothing to write, without an error. */
  idleMs(): number
  /** Writes the open events, then stops, at the deadline at the latest. Milliseconds, monotonic. */
  stop(deadline: number): Promise<void>
}

export type LeasedEventsOptions = {
  db: Db
  queue: Queue
  /** The lease that identifies this process in the outbox. */
  lease: string
  /** Milliseconds before a failed write is tried again. */
  intervalMs: number
  onError: (error: unknown) => void
  /** Called with deliveries that were written together with their attempts. */
  onSettled: (held: readonly HeldDelivery[]) => void
  /** Called with deliveries that wait in the queue now. */
  onQueued: (held: readonly HeldDelivery[]) => void
  /**
   * Called for a delivery that ended or was put back while it was being written as claimed. The caller settles it or
   * hands it back.
   */
  onLate: (held: HeldDelivery, end: Settlement | 'queued') => void
  /** Called when events were given up. */
  onReleased: () => void
}

/** `wasClaimed`: a try to write it as claimed was made. If its response was lost, this process may have the claim. */
type Part = { held: HeldDelivery; open: Open; end: Settlement | 'queued' | null; wasClaimed: boolean }
type Open = { event: LeasedEvent; parts: Part[]; unended: number; isDue: boolean; looks: number }

export function startLeasedEvents(options: LeasedEventsOptions): LeasedEvents {
  const { db, lease, intervalMs, onError, onSettled, onQueued, onLate, onReleased } = options
  /** By event id, the oldest first. */
  const open = new Map<string, Open>()
  const parts = new Map<HeldDelivery, Part>()
  let withoutDeliveries = 0
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
      if (one.looks >= maxLooks) makeDue(one)
    }
    if (open.size > 0) lookLater()
  }

  function lookLater(): void {
    timer ??= setTimeout(look, lookMs)
    timer.unref()
  }

  async function finish(batch: readonly Open[]): Promise<void> {
    // Attempts that end while the statement runs change the parts, but not these.
    const finished = batch.map(({ event, parts }) => ({
      event,
      deliveries: parts.map(({ held, end }) => ({ delivery: held.delivery, end: end ?? ('claimed' as const) })),
    }))
    for (const { parts } of batch) for (const part of parts) part.wasClaimed ||= part.end === null
    const now = performance.now()
    const ours = await finishEvents(options, lease, finished)
    const settled: HeldDelivery[] = []
    const queued: HeldDelivery[] = []
    for (const [at, one] of batch.entries()) {
      open.delete(one.event.id)
      if (one.parts.length === 0) withoutDeliveries -= 1
      for (const [index, { held, end, wasClaimed }] of one.parts.entries()) {
        parts.delete(held)
        // If the event is no longer leased to this process, an earlier try may have written it and its response was
        // lost. Results that came since then must still be settled. If no try has written it, settling finds no
        // delivery and does nothing.
        const isOurs = ours.has(one.event.id)
        const isWritten = isOurs && finished[at]?.deliveries[index]?.end === end
        if (isWritten && end !== null && end !== 'queued') {
          settled.push(held)
          continue
        }
        if (end === 'queued' && (isWritten || !(isOurs || wasClaimed))) {
          // If an earlier try wrote it, it may be claimed by now: that claim must not be handed back.
          queued.push(held)
          continue
        }
        if (isOurs) held.aliveAt = now
        held.claimed = { deliveryId: held.delivery.id, claim: { id: uuidOf(held.delivery.id), retryCount: 0 } }
        if (end !== null) onLate(held, end)
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
        held: { delivery, claimed: null, since: now, aliveAt: now, request: null },
        open: one,
        end: null,
        wasClaimed: false,
      }))
      open.set(event.id, one)
      for (const part of one.parts) parts.set(part.held, part)
      if (deliveries.length > 0) lookLater()
      else {
        withoutDeliveries += 1
        makeDue(one)
      }
      return one.parts.map(({ held }) => held)
    },
    isOpen: (eventId) => open.has(eventId),
    release(eventIds) {
      if (!isStopping) for (const id of eventIds) releasing.add(id)
      // A transaction committed after the worker had stopped.
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
    withoutDeliveries: () => withoutDeliveries,
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
