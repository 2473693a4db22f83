import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const run = promisify(execFile)
const openapi = (...args: string[]) => run(process.execPath, ['scripts/openapi.ts', ...args])

test('the committed spec is what the contract says', async () => {
  const { stdout } = await openapi('--check')
  expect(stdout).toContain('is what the contract says')
})

test('a spec that differs is found, and writing it again mends it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'postern-openapi-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const file = join(directory, 'openapi.json')
  const committed = await readFile('openapi/openapi.json', 'utf8')
  await writeFile(file, committed.replace('Create a webhook', 'Make a webhook'))

  await expect(openapi('--check', file)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Run `npm run openapi`'),
  })
  await openapi(file)
  await openapi('--check', file)
  expect(await readFile(file, 'utf8')).toBe(committed)
})
