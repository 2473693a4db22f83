import { inject } from 'vitest'

declare module 'vitest' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: only an interface can be added to
  interface ProvidedContext {
    /** How much the fault suite does: `short` in `npm test`, `long` in `npm run test:faults`. */
    faultRound: 'short' | 'long'
  }
}

/** How often a fault is repeated in this run. */
export function rounds({ short, long }: { short: number; long: number }): number {
  return inject('faultRound') === 'long' ? long : short
}

/** Milliseconds a test of the fault suite may take: it ends when all is well, however long that takes a busy machine. */
export function timeLimit(count: number): number {
  return 120_000 + 10_000 * count
}
