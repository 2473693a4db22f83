import { appendFileSync } from 'node:fs'

/**
 * Reports that `judge` is skipped because `tool` is not on this machine. Also appends this to the file in
 * `SKIPPED_JUDGES`, which `.ci/run` prints at its end. With `CI_REQUIRE=1` the missing tool is a failure.
 */
export function skipWithout(tool: string, { judge }: { judge: string }): void {
  const required = process.env.CI_REQUIRE === '1'
  const list = process.env.SKIPPED_JUDGES
  if (!required && list !== undefined) appendFileSync(list, `${judge} (needs ${tool})\n`)
  process.stdout.write(`${required ? 'FAILED' : 'Skipped'} ${judge}: ${tool} is not on this machine.\n`)
  process.exitCode = required ? 1 : 0
}
