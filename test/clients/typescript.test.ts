import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { startReceiver } from '../support/receiver.ts'
import { startTestService } from '../support/service.ts'
import { generateHeyApi, generateOpenapiTypescript } from './generate.ts'
import type { Program } from './programs/tour.ts'

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
  // Not a static import: what it imports is there only once it is generated.
  const load = (): Promise<Program> => import(`./programs/${name}.ts`)

  test('a generated client creates, changes, lists and deletes a webhook of a running service', async () => {
    const service = await startTestService({ roles: { worker: false } })
    onTestFinished(() => service.stop())
    const { tour } = await load()

    const seen = await tour({ baseUrl: service.url, apiKey: service.keys.live })

    expect(seen).toEqual({
      id: expect.stringMatching(/^wh_/),
      secret: expect.stringMatching(/^whsec_/),
      disabledReason: 'manual',
      listed: [seen.id],
      deleteStatus: 204,
      missingCode: 'not_found',
    })
  })

  test('a generated client reads an event by its type, listed and pushed', async () => {
    const service = await startTestService()
    onTestFinished(() => service.stop())
    await using receiver = await startReceiver()
    await service.client.succeed(contract.webhooks.create, {
      body: { url: receiver.url, events: ['subscriber.added'] },
    })
    const { addSubscriber, subjectOfPushed } = await load()

    const listed = await addSubscriber({ baseUrl: service.url, apiKey: service.keys.live }, 'ada@example.com')
    const [delivery] = await receiver.received(1)

    expect(listed).toEqual(['ada@example.com is active'])
    expect(subjectOfPushed(String(delivery?.body))).toBe('ada@example.com is active')
  })
})
