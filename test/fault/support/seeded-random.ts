import { onTestFailed } from 'vitest'
import { rounds } from './rounds.ts'

/** Random numbers that are the same for the same seed. */
export type Random = {
  /** Returns a number from 0 to below `below`. */
  number(below: number): number
  /** Returns a whole number from 0 to below `below`. */
  int(below: number): number
  pick<T>(values: readonly T[]): T
  /** Returns other random numbers: those of one do not depend on how often the other is asked. */
  fork(): Random
}

/** A linear congruential generator with the constants of Numerical Recipes: good enough to choose moments and people. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const int = (below: number) => Math.floor(next() * below)
  return {
    number: (below) => next() * below,
    int,
    pick(values) {
      const value = values[int(values.length)]
      if (value === undefined) throw new Error('there is nothing to pick from')
      return value
    },
    fork: () => createRandom(int(2 ** 32)),
  }
}

/**
 * Returns random numbers for a test: in the long round others each time, in the short one those of `seed`. A test that
 * fails says its seed, and FAULT_SEED makes it choose the same again.
 */
export function randomOfTest(seed: number): Random {
  const own = Number(process.env.FAULT_SEED ?? rounds({ short: seed, long: Date.now() % 2 ** 32 }))
  onTestFailed(() => console.error(`The seed was ${own}. To choose the same again, set FAULT_SEED=${own}.`))
  return createRandom(own)
}
