import type { EventTypeName } from '../../contract/event-types.ts'
import type { Db } from '../database/connection.ts'
import { type Loop, startLoop } from '../lib/polling-loop.ts'
import { findPlace, givePositions, selectProgress } from '../outbox/positions.ts'
import { DomainError } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'
import { selectPositioned } from './queries.ts'
import { toEvent } from './service.ts'

/** Open streams of one account in this process, of all its keys and users together. */
export const maxStreamsPerAccount = 50
/** Open streams of all accounts in this process. */
export const maxStreams = 500
/** Events that one statement reads for the streams that are at the same place. */
const batchSize = 200
/** Milliseconds from one round to the next while there is more to read: 2,000 events a second for a stream. */
const restMs = 100
/** Places of one account that are read in a round, so that it keeps no other one waiting, nor the database busy. */
const placesAtOnce = 5
/** Accounts whose waiting events get their positions at the same time. Each may wait a second for a lock. */
const positioningAtOnce = 4
/** The place of a client that has seen no event yet, so that it can go on from the beginning. */
export const beginningId = '0'

/** The receiver of the events of a stream. */
export type StreamSink = {
  /**
   * Takes an event, with the JSON that the API shows of it. Returns false when the reader is slow: nothing more is
   * written until `drained` of the stream is called.
   */
  write(event: { id: string; json: string }): boolean
  /** The service stops, or can no longer read. */
  end(): void
}

export type StreamQuery = {
  type?: EventTypeName | undefined
  /** Only events after this one; `beginningId`: all. Default: those that become visible from now on. */
  after?: string | undefined
}

export type EventStream = {
  /** Where the stream begins: the id of the last event before it, or `beginningId`. */
  startedAfter: string
  /** The reader takes more again. */
  drained(): void
  /** Ends the stream. May be called again. */
  close(): void
}

/** The streams of this process. */
export type EventStreams = {
  /**
   * Starts a stream of the events that a scope may see, in the order of polling, each once. A reader that gives the id of
   * the last event it has seen misses none and gets none twice.
   *
   * Throws `rate_limit_exceeded` when too many streams are open, `event_not_found` when there is no event with the id
   * `after` in the scope, and `unavailable` when the service stops.
   */
  open(scope: Scope, query: StreamQuery, sink: StreamSink): Promise<EventStream>
  /** Ends all streams. No more can be opened. May be called again. */
  close(): Promise<void>
}

type Follower = Scope & {
  type: EventTypeName | undefined
  /** The position of the last event that was written, or that was looked at and is not for this stream. */
  position: number
  isFull: boolean
  sink: StreamSink
}

export type EventStreamsOptions = {
  db: Db
  /** Milliseconds between two looks for new events. Default: 1,000. */
  intervalMs?: number | undefined
  onError: (error: unknown) => void
}

/**
 * Streams of events, by polling: one statement each interval tells how far the accounts with open streams are, and only
 * where there is something new it is read, once for all streams at the same place.
 */
export function createEventStreams({ db, intervalMs = 1_000, onError }: EventStreamsOptions): EventStreams {
  const followers = new Set<Follower>()
  /** Places taken by account: open streams, and those being opened. */
  const taken = new Map<string, number>()
  const positioning = new Map<string, Promise<void>>()
  /** When events of an account were last given positions. Milliseconds, monotonic. */
  const givenAt = new Map<string, number>()
  let loop: Loop | undefined
  let resting: NodeJS.Timeout | undefined
  let isClosed = false

  function take({ accountId }: Scope): () => void {
    if (isClosed) throw new DomainError('unavailable', 'The service stops: open the stream again.', retrySoon)
    const count = taken.get(accountId) ?? 0
    const all = [...taken.values()].reduce((sum, one) => sum + one, 0)
    if (count >= maxStreamsPerAccount || all >= maxStreams) {
      throw new DomainError(
        'rate_limit_exceeded',
        count >= maxStreamsPerAccount
          ? `The account has ${maxStreamsPerAccount} streams of events open, the most there may be in a process: close one first.`
          : `All ${maxStreams} streams of events of this process are taken: try again later, or poll GET /v1/events.`,
        { retryAfterSeconds: 15 },
      )
    }
    taken.set(accountId, count + 1)
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      const left = (taken.get(accountId) ?? 1) - 1
      if (left > 0) taken.set(accountId, left)
      else {
        taken.delete(accountId)
        givenAt.delete(accountId)
      }
    }
  }

  async function placeOf(scope: Scope, { type, after }: StreamQuery): Promise<{ position: number; id: string }> {
    if (after === beginningId) return { position: 0, id: beginningId }
    if (after !== undefined) {
      const place = await findPlace(db, scope, after)
      if (place !== null && place.position > 0) return place
      throw new DomainError(
        'event_not_found',
        `There is no event "${after}" for this key that a stream can go on after: it does not exist, was deleted after its retention, or belongs to the other mode. Read what you missed with GET /v1/events, and open the stream without it.`,
      )
    }
    await givePositions(db, scope.accountId)
    const { rows } = await selectPositioned(db, scope, { type, above: 0, order: 'desc', limit: 1 })
    return rows[0] ?? { position: 0, id: beginningId }
  }

  /** Reads what is new for the streams at one place, and writes it. */
  async function feed(group: readonly Follower[], upTo: number): Promise<void> {
    const [first] = group
    if (first === undefined) return
    const { position: above, type } = first
    const { rows } = await selectPositioned(db, first, { type, above, order: 'asc', limit: batchSize })
    // Made once for all streams, and not at all where none takes it.
    const jsons: string[] = []
    for (const follower of group) {
      if (!followers.delete(follower)) continue
      // At the end, so that the others of its account come first in the next round.
      followers.add(follower)
      for (const [index, row] of rows.entries()) {
        if (follower.isFull) break
        jsons[index] ??= JSON.stringify(toEvent(row))
        follower.isFull = !follower.sink.write({ id: row.id, json: jsons[index] })
        follower.position = row.position
      }
      // It has seen all events that were committed before the statement.
      if (rows.length < batchSize && !follower.isFull) follower.position = Math.max(follower.position, upTo)
    }
  }

  /** Starts to give positions to the events of an account that wait in the outbox. Does not wait for it. */
  function givePositionsOf(accountId: string): void {
    const now = performance.now()
    // An event keeps its row in the outbox while it waits for its fan-out, and has its position by then.
    const isDue = now - (givenAt.get(accountId) ?? Number.NEGATIVE_INFINITY) >= intervalMs
    if (!isDue || positioning.size === positioningAtOnce || positioning.has(accountId)) return
    givenAt.set(accountId, now)
    const giving = givePositions(db, accountId)
      .then(goOnSoon, onError)
      .finally(() => positioning.delete(accountId))
    positioning.set(accountId, giving)
  }

  /** One round. */
  async function run(): Promise<boolean> {
    const ready = [...followers].filter(({ isFull }) => !isFull)
    if (ready.length === 0) return false
    const progress = await selectProgress(db, [...new Set(ready.map(({ accountId }) => accountId))])
    for (const { accountId, waits, position } of progress) {
      if (waits) givePositionsOf(accountId)
      const behind = ready.filter((one) => one.accountId === accountId && one.position < position)
      const places = Map.groupBy(behind, ({ mode, type, position: above }) => [mode, type, above].join(' '))
      for (const place of [...places.values()].slice(0, placesAtOnce)) await feed(place, position)
      if (places.size > placesAtOnce || behind.some((one) => !one.isFull && one.position < position)) goOnSoon()
    }
    return false
  }

  function goOnSoon(): void {
    if (isClosed) return
    resting ??= setTimeout(() => {
      resting = undefined
      loop?.wake()
    }, restMs)
  }

  return {
    async open(scope, query, sink) {
      const release = take(scope)
      let place: { position: number; id: string }
      try {
        place = await placeOf(scope, query)
        if (isClosed) throw new DomainError('unavailable', 'The service stops: open the stream again.', retrySoon)
      } catch (error) {
        release()
        throw error
      }
      const { accountId, mode } = scope
      const follower: Follower = { accountId, mode, type: query.type, position: place.position, isFull: false, sink }
      followers.add(follower)
      loop ??= startLoop({ intervalMs, run, onError })
      loop.wake()
      return {
        startedAfter: place.id,
        drained() {
          follower.isFull = false
          goOnSoon()
        },
        close() {
          followers.delete(follower)
          release()
        },
      }
    },
    async close() {
      isClosed = true
      for (const { sink } of followers) sink.end()
      followers.clear()
      clearTimeout(resting)
      await loop?.stop()
      await Promise.all(positioning.values())
    },
  }
}

const retrySoon = { retryAfterSeconds: 1 }
