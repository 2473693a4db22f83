import type { BenchmarkContext, Cost } from './benchmark.ts'
import { median } from './statistics.ts'

/** One measurement of a side. */
export type Round<T> = {
  value: T
  /** Processor time used while it ran, by the name of the process. */
  cpuSeconds: ReadonlyMap<string, number>
}

/** One of the compared sides. */
export type Side<T> = {
  /** Runs before each measurement and is not measured. */
  prepare?: () => Promise<void>
  measure: () => Promise<T>
}

/**
 * Measures all sides alternately for the rounds of the context. Every other round is in reverse order, so that other
 * load on the machine affects all sides alike. A side that is null has no rounds.
 */
export async function inTurn<Name extends string, T>(
  { processes, rounds, progress }: BenchmarkContext,
  sides: Readonly<Record<Name, Side<T> | null>>,
  describe: (value: T) => string,
): Promise<Record<Name, Round<T>[]>> {
  const measured = new Map<string, Round<T>[]>(Object.keys(sides).map((name) => [name, []]))
  const entries = Object.entries<Side<T> | null>(sides).flatMap(([name, side]) =>
    side === null ? [] : [{ name, ...side }],
  )
  for (let round = 0; round < rounds; round++) {
    for (const { name, prepare, measure } of round % 2 === 0 ? entries : entries.toReversed()) {
      await prepare?.()
      const before = await processes.usage()
      const value = await measure()
      const after = await processes.usage()
      const cpuSeconds = new Map(
        [...after].map(([process, usage]) => [process, usage.cpuSeconds - (before.get(process)?.cpuSeconds ?? 0)]),
      )
      measured.get(name)?.push({ value, cpuSeconds })
      progress(`round ${round + 1} of ${rounds}, ${name}: ${describe(value)}`)
    }
  }
  return Object.fromEntries(measured) as Record<Name, Round<T>[]>
}

/** Returns a figure of all rounds of a side. */
export function valuesOf<T>(rounds: readonly Round<T>[], figure: (value: T) => number): number[] {
  return rounds.map(({ value }) => figure(value))
}

/** Returns the CPU time of each process in a round, by side. Leaves out medians below 0.05 s. */
export function costsOf(sides: Readonly<Record<string, readonly Round<unknown>[]>>): Cost[] {
  return Object.entries(sides).flatMap(([side, rounds]) => {
    const names = new Set(rounds.flatMap(({ cpuSeconds }) => [...cpuSeconds.keys()]))
    return [...names]
      .map((process) => ({
        side,
        process,
        cpuSeconds: median(rounds.map(({ cpuSeconds }) => cpuSeconds.get(process) ?? 0)),
      }))
      .filter(({ cpuSeconds }) => cpuSeconds >= 0.05)
  })
}
