/** The reduced connection limit of a host. */
export type Pace = {
  connections: number
  /** The time when the host last asked for fewer connections. */
  cutAt: Date
}

/**
 * Returns how many of so many connections conversations in bulk may use. Of four and more, a tenth is left for what is
 * sent singly, rounded up.
 */
export function mostInBulk(connections: number): number {
  return connections < 4 ? connections : connections - Math.ceil(connections / 10)
}

/** The limit grows by one connection per step. Milliseconds. */
const recoveryStepMs = 60_000

/** Returns the connection limit of a host at `now`. A `pace` of null: the host never asked for fewer. */
export function allowedConnections(pace: Pace | null, max: number, now: Date): number {
  if (pace === null) return max
  const steps = Math.max(0, Math.floor((now.getTime() - pace.cutAt.getTime()) / recoveryStepMs))
  return Math.min(max, pace.connections + steps)
}

/**
 * Returns the pace after a host has asked for less in a conversation that began at `begunAt`: half the connections,
 * at least one. A conversation that began before the last cut says nothing about the pace since then, and is ignored.
 */
export function slowedPace(pace: Pace | null, { max, begunAt, now }: { max: number; begunAt: Date; now: Date }): Pace {
  if (pace !== null && begunAt.getTime() <= pace.cutAt.getTime()) return pace
  return { connections: Math.max(1, Math.floor(allowedConnections(pace, max, now) / 2)), cutAt: now }
}
