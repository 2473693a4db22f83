import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Reporter, Vitest } from 'vitest/node'

const shown = 10

/** The files that are set up before each file of tests. */
export const costSetup = process.env.TEST_COSTS === '1' ? ['test/support/costs.ts'] : []

/**
 * With TEST_COSTS=1, tells at the end of a run what it cost: the seconds of processor time of all files with the programs
 * that they ran, of the folders, and of the files that cost most. The PostgreSQL server of the run is not in it.
 */
export class CostReporter implements Reporter {
  #vitest: Vitest | undefined

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunEnd(): void {
    const directory = this.#vitest?.getRootProject().getProvidedContext().runDirectory
    const file = join(directory ?? '', 'costs')
    if (directory === undefined || !existsSync(file)) return
    this.#vitest?.logger.log(reportOf(readFileSync(file, 'utf8')))
  }
}

/** The lines of a report, from lines such as `1.25 test/smtp/direct.test.ts`. */
export function reportOf(written: string): string {
  const costs = written
    .trimEnd()
    .split('\n')
    .map((line) => ({ seconds: Number.parseFloat(line), file: line.slice(line.indexOf(' ') + 1) }))
  const total = costs.reduce((sum, { seconds }) => sum + seconds, 0)
  const folders = new Map<string, number>()
  for (const { seconds, file } of costs) {
    const folder = file.split('/').slice(0, 2).join('/')
    folders.set(folder, (folders.get(folder) ?? 0) + seconds)
  }
  const most = (entries: [string, number][]) =>
    entries
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, shown)
      .map(([name, seconds]) => `${seconds.toFixed(1).padStart(7)} s ${name}`)
  return [
    `Processor time: ${total.toFixed(1)} s for ${costs.length} files, without PostgreSQL. The folders with the most of it:`,
    ...most([...folders]),
    'The files with the most of it:',
    ...most(costs.map(({ seconds, file }) => [file, seconds])),
  ].join('\n')
}
