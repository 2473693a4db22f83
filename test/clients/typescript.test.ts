import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { generateHeyApi, generateOpenapiTypescript } from './generate.ts'

const run = promisify(execFile)

beforeAll(async () => {
  await generateOpenapiTypescript()
  await generateHeyApi()
})

test('the generated clients compile, and so do programs that use them', async () => {
  const compiled = await run('node_modules/.bin/tsc', ['--project', 'test/clients/programs']).catch((error) => error)
  expect(compiled.stdout).toBe('')
})
