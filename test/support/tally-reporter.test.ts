import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

let directory: string

beforeEach(async () => {
  // Inside the project, so that its packages are found.
  directory = await mkdtemp(resolve('node_modules', '.tally-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** Runs these files of tests and returns the exit code, and what the reporter appended. */
async function runTests(files: Record<string, string>): Promise<{ code: number; tally: string }> {
  const reporter = JSON.stringify(resolve('test/support/tally-reporter.ts'))
  await writeFile(
    join(directory, 'vitest.config.ts'),
    `import { TallyReporter } from ${reporter}
    export default { test: { reporters: [new TallyReporter()], include: ['*.test.ts'] } }`,
  )
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(directory, name), `import { expect, test } from 'vitest'\n${text}`)
  }
  const tally = join(directory, 'tally')
  await writeFile(tally, '7 0 0\n')
  const child = spawn(process.execPath, [resolve('node_modules/vitest/vitest.mjs'), 'run', '--root', directory], {
    cwd: directory,
    env: { PATH: process.env.PATH, TEST_TALLY: tally },
    stdio: 'ignore',
  })
  const [code] = await once(child, 'exit')
  return { code, tally: await readFile(tally, 'utf8') }
}

test('the counts of a run are appended, also those that are 0', async () => {
  const one = "test('passes', () => {})"
  const other = "test.each([1, 2])('passes %i', () => {})\ntest.skip('is skipped', () => {})\ntest.todo('is missing')"
  expect(await runTests({ 'one.test.ts': one, 'other.test.ts': other })).toEqual({ code: 0, tally: '7 0 0\n3 0 2\n' })
})

test('what fails is counted, and a file that cannot be loaded is one that fails', async () => {
  const one = "test('passes', () => {})\ntest('fails', () => expect(1).toBe(2))"
  const broken = "throw new Error('broken')"
  expect(await runTests({ 'one.test.ts': one, 'broken.test.ts': broken })).toEqual({ code: 1, tally: '7 0 0\n1 2 0\n' })
})
