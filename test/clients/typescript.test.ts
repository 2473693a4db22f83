import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startTestService } from '../support/service.ts'
import { generateHeyApi, generateOpenapiTypescript } from './generate.ts'
import type { Target, Tour } from './programs/tour.ts'

const run = promisify(execFile)

beforeAll(async () => {
  await generateOpenapiTypescript()
  await generateHeyApi()
})

test('the generated clients compile, and so do programs that use them', async () => {
  const compiled = await run('node_modules/.bin/tsc', ['--project', 'test/clients/programs']).catch((error) => error)
  expect(compiled.stdout).toBe('')
})

describe.each(['openapi-fetch', 'hey-api'])('the client of %s', (name) => {
  test('creates, changes, lists and deletes a webhook of a running service', async () => {
    const service = await startTestService({ roles: { worker: false } })
    onTestFinished(() => service.stop())
    // Not a static import: what it imports is there only once it is generated.
    const program: { tour(target: Target): Promise<Tour> } = await import(`./programs/${name}.ts`)

    const seen = await program.tour({ baseUrl: service.url, apiKey: service.keys.live })

    expect(seen).toEqual({
      id: expect.stringMatching(/^wh_/),
      secret: expect.stringMatching(/^whsec_/),
      disabledReason: 'manual',
      listed: [seen.id],
      deleteStatus: 204,
      missingCode: 'not_found',
    })
  })
})
