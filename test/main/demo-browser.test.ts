import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openInBrowser } from '../../scripts/demo/browser.ts'
import { patienceMs } from '../support/patience.ts'

/** Puts a program in the place of that which opens addresses; it writes down what it is given. */
async function opener(platform: NodeJS.Platform, name: string) {
  const directory = await mkdtemp(join(tmpdir(), 'postern-opener-'))
  const opened = join(directory, 'opened')
  const program = join(directory, name)
  await writeFile(
    program,
    `#!/bin/sh\nPATH=/usr/bin:/bin\nprintf '%s\\n' "$@" > "${opened}.part" && mv "${opened}.part" "${opened}"\n`,
  )
  await chmod(program, 0o755)
  // Nothing else is found, so that nothing is opened on a machine with a browser.
  const env = { PATH: directory }
  return {
    open: (isTerminal: boolean) =>
      openInBrowser('http://127.0.0.1:3000/app?a=1&b=$(id)', { isTerminal, platform, env }),
    opened: () => vi.waitFor(() => readFile(opened, 'utf8'), { timeout: patienceMs }),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}

test.each([
  ['linux', 'xdg-open'],
  ['darwin', 'open'],
  ['win32', 'explorer.exe'],
] as const)(
  'the demo opens the dashboard in the browser of %s, whatever a shell would take the address for',
  async (platform, name) => {
    await using browser = await opener(platform, name)
    expect(await browser.open(true)).toBe(true)
    expect(await browser.opened()).toBe('http://127.0.0.1:3000/app?a=1&b=$(id)\n')
  },
)

test('the demo opens nothing without a terminal, and goes on where nothing can be opened', async () => {
  await using browser = await opener('linux', 'another-program')
  expect(await browser.open(true)).toBe(false)
  await using there = await opener('linux', 'xdg-open')
  expect(await there.open(false)).toBe(false)
})
