import type { Claim } from './claim.ts'
import type { Lane } from './lane.ts'

/** Room for deliveries while they are fanned out. What is not filled is free again when it is disposed of. */
export type Room = Disposable & {
  /** Deliveries there is room for. */
  readonly size: number
  /** Takes over deliveries that were claimed for it, once that is committed. */
  fill(claims: readonly Claim[]): Promise<void>
}

/** Offers the room of a lane to the fan-out of the same process. */
export type RoomOffers = {
  /**
   * Room for a batch, or for nothing while there is little or the lane is spoken for. With `waits` it answers
   * when there is some, and at the latest after a tenth of a second.
   */
  offer(waits: boolean): Promise<Room>
  /** There may be room now. */
  wake(): void
  /** Offers nothing any more. What fills a room from now on is handed back. */
  close(): void
}

export type RoomOffersOptions = {
  lane: Lane
  /** Deliveries offered room at once at most. */
  batchSize: number
  /** Whether anything goes first. */
  isSpokenFor: () => boolean
  /** Has deliveries made, in the lane. */
  make: (claims: readonly Claim[]) => Promise<void>
  handBack: (claims: readonly Claim[]) => Promise<void>
}

/** Milliseconds. It is also what has so many events leave the outbox whatever hangs: a batch in each. */
const patienceMs = 100

export function createRoomOffers({ lane, batchSize, isSpokenFor, make, handBack }: RoomOffersOptions): RoomOffers {
  const waiting = new Set<() => void>()
  let isClosed = false

  /** A fan-out of a handful costs as much as one of hundreds. */
  function isOpen(): boolean {
    return !isClosed && !isSpokenFor() && lane.room() >= lane.places.total
  }

  async function roomComes(): Promise<void> {
    const deadline = performance.now() + patienceMs
    while (!isClosed && !isOpen() && performance.now() < deadline) {
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
      const size = isOpen() ? Math.min(lane.room(), batchSize) : 0
      lane.reserve(size)
      let isReserved = true
      function endReservation(): void {
        if (isReserved) lane.release(size)
        isReserved = false
      }
      return {
        size,
        async fill(claims) {
          endReservation()
          await (isClosed ? handBack(claims) : make(claims))
        },
        [Symbol.dispose]: endReservation,
      }
    },
    wake() {
      if (isOpen()) wake()
    },
    close() {
      isClosed = true
      wake()
    },
  }
}
