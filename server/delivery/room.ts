import type { Claim } from './claim.ts'
import type { Lane } from './lane.ts'

/** Room for deliveries while they are fanned out. What is not filled is free again when it is disposed of. */
export type Room = Disposable & {
  /** Deliveries there is room for. */
  readonly size: number
  /** Whether only those fit in whose turn it is: what waits beyond its turn is not overtaken by what has none yet. */
  readonly onlyTurns: boolean
  /** Takes over deliveries that were fanned out for it, once that is committed. */
  fill(claims: readonly Claim[]): Promise<void>
}

/** A lane with places for what is fanned out. */
export type OpenLane = { lane: Lane; onlyTurns: boolean }

/** Offers the room of lanes to the fan-out of the same process. */
export type RoomOffers = {
  /**
   * Room for a batch, or for nothing while there is little or all lanes are spoken for. With `waits` it answers
   * when there is some for all deliveries alike, and at the latest after a tenth of a second.
   */
  offer(waits: boolean): Promise<Room>
  /** There may be room now. */
  wake(): void
  /** Offers nothing any more. What fills a room from now on is handed back. */
  close(): void
}

export type RoomOffersOptions = {
  /** The lane they go to now. Null: whatever is in the queue goes first. */
  laneNow: () => OpenLane | null
  /** Deliveries offered room at once at most. */
  batchSize: number
  /** Has deliveries made, in a lane. */
  make: (lane: Lane, claims: readonly Claim[]) => Promise<void>
  handBack: (claims: readonly Claim[]) => Promise<void>
}

/** Milliseconds. It is also what has so many events leave the outbox whatever hangs: a batch in each. */
const patienceMs = 100

export function createRoomOffers({ laneNow, batchSize, make, handBack }: RoomOffersOptions): RoomOffers {
  const noRoom: Room = { size: 0, onlyTurns: false, fill: handBack, [Symbol.dispose]: () => undefined }
  const waiting = new Set<() => void>()
  let isClosed = false

  /** A fan-out of a handful costs as much as one of hundreds. */
  function openLane(): OpenLane | null {
    const open = isClosed ? null : laneNow()
    return open !== null && open.lane.room() >= open.lane.places.total ? open : null
  }

  async function roomComes(): Promise<void> {
    const deadline = performance.now() + patienceMs
    while (!isClosed && openLane()?.onlyTurns !== false && performance.now() < deadline) {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.add(resolve)
      const timer = setTimeout(resolve, deadline - performance.now())
      await promise
      clearTimeout(timer)
      waiting.delete(resolve)
    }
  }

  function wake(): void {
    for (const endWait of waiting) endWait()
  }

  return {
    async offer(waits) {
      if (waits) await roomComes()
      const open = openLane()
      if (open === null) return noRoom
      const { lane, onlyTurns } = open
      const size = Math.min(lane.room(), batchSize)
      lane.reserve(size)
      let isReserved = true
      function endReservation(): void {
        if (isReserved) lane.release(size)
        isReserved = false
      }
      return {
        size,
        onlyTurns,
        async fill(claims) {
          endReservation()
          await (isClosed ? handBack(claims) : make(lane, claims))
        },
        [Symbol.dispose]: endReservation,
      }
    },
    wake() {
      if (openLane() !== null) wake()
    },
    close() {
      isClosed = true
      wake()
    },
  }
}
