/** Requests a minute, by the name of the plan. */
export type RateLimits = Readonly<Record<string, number>>

/** Returns the requests a minute that a plan allows: those of the smallest plan where it is not known. */
export function limitOfPlan(limits: RateLimits, plan: string): number {
  const smallest = Math.min(...Object.values(limits))
  return Object.hasOwn(limits, plan) ? (limits[plan] ?? smallest) : smallest
}
