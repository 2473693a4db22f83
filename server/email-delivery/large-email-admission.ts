/**
 * A FIFO admission control for emails that are too large to hold many of them in memory. It limits their bytes and,
 * to leave connections for small emails, their number.
 */
export type LargeEmailAdmission = {
  /**
   * Waits for room behind earlier emails and returns a release function, to be called once. Null: too many emails
   * wait already, or `signal` was aborted first.
   */
  enter(email: LargeEmail, signal: AbortSignal): Promise<(() => void) | null>
}

export type LargeEmail = {
  destination: string
  /** Memory that the email needs. More than the limit counts as the limit. */
  bytes: number
}

export type LargeEmailLimits = {
  bytes: number
  /** Maximum admitted emails: in total, and for one destination. */
  emails: number
  perDestination: number
  /** Maximum waiting emails. One destination may hold at most as many as there are free waiting places. */
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
      // Later emails must not overtake a large one, or it might wait forever.
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
