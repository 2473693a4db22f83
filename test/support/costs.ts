import { appendFileSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, expect, inject } from 'vitest'

/*
 * Set up before each file of tests with TEST_COSTS=1: writes down what the file cost when it has ended, for
 * cost-reporter.ts.
 */

/** Seconds of processor time of the programs that this process has run to their end. Zero but on Linux. */
function secondsOfChildren(): number {
  try {
    // Behind the name, which may have spaces, the fourteenth and fifteenth field, in hundredths of a second.
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return (Number(fields[13]) + Number(fields[14])) / 100
  } catch {
    return 0
  }
}

/** Seconds of processor time of this process and of those programs. */
function secondsSoFar(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + secondsOfChildren()
}

// The process of a file may have run others before.
const before = secondsSoFar()

afterAll(() => {
  const file = relative(process.cwd(), expect.getState().testPath ?? '')
  const seconds = secondsSoFar() - before
  appendFileSync(join(inject('runDirectory'), 'costs'), `${seconds.toFixed(2)} ${file}\n`)
})
