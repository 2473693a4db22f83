import { appendFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { operations } from './published-spec.ts'

/*
 * Which answers of the spec were seen, by all test processes of a run: each writes a file of its own
 * into one directory, a line for every pair that is new to it.
 */

export type ExercisedLog = { add(operationId: string, status: number): void }

/** The log of this process. */
export function openExercisedLog(directory: string): ExercisedLog {
  const file = join(directory, `${process.pid}.txt`)
  const known = new Set<string>()
  return {
    add(operationId, status) {
      const line = `${operationId} ${status}`
      if (known.has(line)) return
      known.add(line)
      appendFileSync(file, `${line}\n`)
    },
  }
}

/** The answers the spec declares and no process of the run has seen, as `operation status`. */
export function neverExercised(directory: string): string[] {
  const seen = new Set(
    readdirSync(directory).flatMap((file) => readFileSync(join(directory, file), 'utf8').split('\n')),
  )
  const declared = operations.flatMap(({ id, answers }) => [...answers.keys()].map((status) => `${id} ${status}`))
  return declared.filter((line) => !seen.has(line))
}
