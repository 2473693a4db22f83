/**
 * Says that a check is skipped because `tool` is not on this machine. With `CI_REQUIRE=1` that is a
 * failure: there the tool must be.
 */
export function skipWithout(tool: string): void {
  const required = process.env.CI_REQUIRE === '1'
  process.stdout.write(`${required ? 'FAILED' : 'Skipped'}: ${tool} is not on this machine.\n`)
  process.exitCode = required ? 1 : 0
}
