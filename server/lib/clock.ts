/** Where the time comes from. Handed in, so that a test can move it. */
export type Clock = {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }
