import type { Transport } from './transport.ts'

/** Places at destinations, taken for conversations from when they are planned until the transport counts them. */
export type Places = {
  /** How many are left in all. */
  room(): number
  /** Takes one at a destination, if there is one there and in all. Answers how to leave it, which does so once. */
  take(destination: string): (() => void) | null
}

export function createPlaces(transport: Pick<Transport, 'room' | 'roomFor'>): Places {
  const taken = new Map<string, number>()
  let total = 0

  function change(destination: string, by: 1 | -1): void {
    total += by
    const count = (taken.get(destination) ?? 0) + by
    if (count === 0) taken.delete(destination)
    else taken.set(destination, count)
  }

  const room = () => Math.max(0, transport.room() - total)

  return {
    room,
    take(destination) {
      if (room() === 0 || (taken.get(destination) ?? 0) >= transport.roomFor(destination)) return null
      change(destination, 1)
      let left = false
      return () => {
        if (!left) change(destination, -1)
        left = true
      }
    },
  }
}
