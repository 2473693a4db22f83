/**
 * Room for the emails that are too large to be in memory many at a time. It is bounded in bytes; and in
 * number, so that they leave connections to the small ones.
 */
export type LargeEmailAdmission = {
  /**
   * Enters when there is room, behind those that came before. Answers how to leave, to be called once; null:
   * too many wait already, or `signal` was aborted before its turn came.
   */
  enter(email: LargeEmail, signal: AbortSignal): Promise<(() => void) | null>
}

export type LargeEmail = {
  destination: string
  /** What it takes of the memory; above the whole it is taken for the whole. */
  bytes: number
}

export type LargeEmailLimits = {
  bytes: number
  /** That are in it at once: in all, and to one destination. */
  emails: number
  perDestination: number
  /** That wait at once. No destination has more of them than are left for others. */
  waiting: number
}

type QueuedLargeEmail = LargeEmail & { end(leave: (() => void) | null): void }

export function createLargeEmailAdmission(limits: LargeEmailLimits): LargeEmailAdmission {
  const inside = new Set<LargeEmail>()
  const waiting = new Set<QueuedLargeEmail>()

  function admit(): void {
    let free = limits.bytes - [...inside].reduce((sum, { bytes }) => sum + bytes, 0)
    for (const one of waiting) {
      if (inside.size >= limits.emails) return
      if (countOf(inside, one.destination) >= limits.perDestination) continue
      // The largest has its turn too: nobody passes it.
      if (one.bytes > free) return
      free -= one.bytes
      inside.add(one)
      one.end(() => {
        inside.delete(one)
        admit()
      })
    }
  }

  return {
    enter({ destination, bytes }, signal) {
      const { promise, resolve } = Promise.withResolvers<(() => void) | null>()
      const giveUp = () => one.end(null)
      const one: QueuedLargeEmail = {
        destination,
        bytes: Math.min(bytes, limits.bytes),
        end(leave) {
          signal.removeEventListener('abort', giveUp)
          waiting.delete(one)
          resolve(leave)
        },
      }
      if (signal.aborted) return Promise.resolve(null)
      const isCrowded = countOf(waiting, destination) >= limits.waiting - waiting.size
      signal.addEventListener('abort', giveUp)
      waiting.add(one)
      admit()
      if (isCrowded && waiting.has(one)) giveUp()
      return promise
    },
  }
}

function countOf(emails: Iterable<LargeEmail>, wanted: string): number {
  return Array.from(emails).filter(({ destination }) => destination === wanted).length
}
