import type { Reporter, TestModule, Vitest } from 'vitest/node'
import { neverExercised } from './exercised.ts'

/**
 * Fails a run of the whole suite in which an answer the spec declares was never seen by the test
 * client. A run of some files or some tests is not judged.
 */
export class ExercisedReporter implements Reporter {
  #vitest: Vitest | undefined

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const vitest = this.#vitest
    if (vitest === undefined || !(await isWhole(vitest, modules))) return
    const missing = neverExercised(vitest.getRootProject().getProvidedContext().exercisedDirectory)
    if (missing.length === 0) {
      vitest.logger.log('Contract: every declared answer of every operation was exercised.')
      return
    }
    vitest.logger.error(`Contract: ${missing.length} declared answers were never exercised:\n  ${missing.join('\n  ')}`)
    process.exitCode = 1
  }
}

async function isWhole(vitest: Vitest, modules: readonly TestModule[]): Promise<boolean> {
  const every = await vitest.globTestSpecifications()
  return modules.length === every.length && vitest.config.testNamePattern === undefined
}
