import { afterAll, expect, vi } from 'vitest'
import { restartIds } from '../../server/shared/ids.ts'
import { patienceMs } from './patience.ts'

/*
 * Set up before each file of tests. Files share the processes that run them, since loading the service costs more than
 * many of them. A file puts back what it changes of the process; two things it need not, or might forget, stand here.
 */

// A test may have moved the clock ahead, and identifiers never go back.
restartIds()

const before = programsRunning()

afterAll(async () => {
  // One that has ended is closed a moment later.
  await vi.waitFor(
    () => expect(programsRunning(), 'the tests of this file have left programs running').toBeLessThanOrEqual(before),
    { timeout: patienceMs },
  )
})

/** Returns how many programs run that this process has started. */
function programsRunning(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'ProcessWrap').length
}
