import { inject } from 'vitest'

declare module 'vitest' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: only an interface can be added to
  interface ProvidedContext {
    /** How much the fault suite does: `short` in `npm test`, `long` in `npm run test:faults`. */
    faultRound: 'short' | 'long'
  }
}

/** How often a fault is repeated in this run, or what is tried in it. */
export function rounds<T = number>({ short, long }: { short: T; long: T }): T {
  return inject('faultRound') === 'long' ? long : short
}

/** How long a test with so many repetitions may take: it ends when all is well, however busy the machine is. */
export function within(repetitions: number): { timeout: number } {
  return { timeout: 120_000 + 15_000 * repetitions }
}
