/** How many connections a host is given at a time, of as many as it may have at most. */
export type Pace = {
  connections: number
  /** When it last asked for fewer. */
  cutAt: Date
}

/** After each of these one connection more is tried. Milliseconds. */
const recoveryStepMs = 60_000

/** How many connections a host is given at `now`. Null: it never asked for fewer. */
export function allowedConnections(pace: Pace | null, max: number, now: Date): number {
  if (pace === null) return max
  const steps = Math.max(0, Math.floor((now.getTime() - pace.cutAt.getTime()) / recoveryStepMs))
  return Math.min(max, pace.connections + steps)
}

/**
 * The pace after a host has asked for less in a conversation that began at `begunAt`: half as many, at least
 * one. What was begun before the last cut tells nothing of the pace since.
 */
export function slowedPace(pace: Pace | null, { max, begunAt, now }: { max: number; begunAt: Date; now: Date }): Pace {
  if (pace !== null && begunAt.getTime() <= pace.cutAt.getTime()) return pace
  return { connections: Math.max(1, Math.floor(allowedConnections(pace, max, now) / 2)), cutAt: now }
}
