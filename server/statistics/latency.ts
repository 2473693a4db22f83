import { latencyClasses } from './figures.ts'
import type { Figures } from './queries.ts'

/** Milliseconds after which a request to an endpoint is given up: no answer takes longer. */
const longestMs = 30_000

/** Returns the number of answers in all classes. */
export function answersOf(figures: Figures): number {
  return latencyClasses.reduce((sum, { figure }) => sum + figures[figure], 0)
}

/**
 * Returns the latency that a share of all answers stayed within, in milliseconds. Within a class the answers are taken
 * as spread evenly, so the result lies in the right class and may differ from the exact one by the width of the class.
 * Null: there are no answers.
 *
 * @param share Above 0, and at most 1.
 */
export function quantileMs(figures: Figures, share: number): number | null {
  const wanted = answersOf(figures) * share
  let before = 0
  let fromMs = 0
  for (const { figure, upToMs } of latencyClasses) {
    const count = figures[figure]
    const toMs = upToMs ?? longestMs
    if (count > 0 && before + count >= wanted) return Math.round(fromMs + ((wanted - before) / count) * (toMs - fromMs))
    before += count
    fromMs = toMs
  }
  return null
}
