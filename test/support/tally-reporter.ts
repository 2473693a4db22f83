import { appendFile } from 'node:fs/promises'
import type { Reporter, TestModule } from 'vitest/node'

/**
 * Appends a line `passed failed skipped` to the file that `TEST_TALLY` names, so that whoever runs several suites
 * can add up what ran: `.ci/run`. A file of tests that could not be loaded counts as one failed test. Does nothing
 * when `TEST_TALLY` is not set.
 */
export class TallyReporter implements Reporter {
  readonly #file = process.env.TEST_TALLY

  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    if (this.#file === undefined) return
    const { passed, failed, skipped } = tallyOf(modules)
    await appendFile(this.#file, `${passed} ${failed} ${skipped}\n`)
  }
}

function tallyOf(modules: readonly TestModule[]): { passed: number; failed: number; skipped: number } {
  const tally = { passed: 0, failed: 0, skipped: 0 }
  for (const module of modules) {
    const states = [...module.children.allTests()].map((test) => test.result().state)
    const failed = states.filter((state) => state === 'failed').length
    tally.passed += states.filter((state) => state === 'passed').length
    // Tests that did not run because something before them failed count as skipped.
    tally.skipped += states.filter((state) => state === 'skipped' || state === 'pending').length
    tally.failed += failed === 0 && module.state() === 'failed' ? 1 : failed
  }
  return tally
}
