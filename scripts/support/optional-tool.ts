import { appendFileSync } from 'node:fs'

/**
 * Says that `judge` is skipped because `tool` is not on this machine, also in the file that `SKIPPED_JUDGES` names,
 * from which `.ci/run` takes its closing lines. With `CI_REQUIRE=1` it is a failure: there the tool must be.
 */
export function skipWithout(tool: string, { judge }: { judge: string }): void {
  const required = process.env.CI_REQUIRE === '1'
  const list = process.env.SKIPPED_JUDGES
  if (!required && list !== undefined) appendFileSync(list, `${judge} (needs ${tool})\n`)
  process.stdout.write(`${required ? 'FAILED' : 'Skipped'} ${judge}: ${tool} is not on this machine.\n`)
  process.exitCode = required ? 1 : 0
}
