import { afterAll, expect, vi } from 'vitest'
import { restartIds } from '../../server/shared/ids.ts'
import { patienceMs } from './patience.ts'

/*
 * Set up before each file of tests. Files share the processes that run them, since loading the service costs more than
 * many of them: what one leaves behind must not reach the next.
 */

// A test may have moved the clock ahead. Identifiers are all that a process remembers of it.
restartIds()

afterAll(async () => {
  // One that has ended is closed a moment later.
  await vi.waitFor(
    () => {
      const programs = process.getActiveResourcesInfo().filter((resource) => resource === 'ProcessWrap')
      expect(programs, 'programs that the tests of this file have started and not stopped').toEqual([])
    },
    { timeout: patienceMs },
  )
})
