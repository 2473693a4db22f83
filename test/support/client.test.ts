import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { createTestClient } from './client.ts'
import { neverExercised, openExercisedLog } from './exercised.ts'

let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'postern-client-test-'))
})
afterAll(() => rm(directory, { recursive: true }))

/** A client of a server that answers as `listener` does, whose log is not that of the run. */
async function clientOf(listener: RequestListener) {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const log = openExercisedLog(directory)
  const client = createTestClient({ url: `http://127.0.0.1:${port}`, key: 'secret', log })
  return {
    client,
    async [Symbol.asyncDispose]() {
      await client.close()
      server.close()
    },
  }
}

const headers = {
  'content-type': 'application/json',
  'x-request-id': 'req_1',
  'x-ratelimit-limit': '10',
  'x-ratelimit-remaining': '9',
  'x-ratelimit-reset': '1772357400',
}

test('a good answer is passed on and written down', async () => {
  let seen: unknown
  await using server = await clientOf(({ method, url, headers: { authorization } }, response) => {
    seen = { method, url, authorization }
    response.writeHead(200, headers).end('{"data":[],"nextCursor":null}')
  })
  expect(neverExercised(directory)).toContain('listAudiences 200')
  const page = await server.client.succeed(contract.audiences.list, { query: { limit: 5 } })
  expect(page).toEqual({ data: [], nextCursor: null })
  expect(seen).toEqual({ method: 'GET', url: '/v1/audiences?limit=5', authorization: 'Bearer secret' })
  expect(neverExercised(directory)).not.toContain('listAudiences 200')
})

test('an answer that breaks the spec fails the test, and is not written down', async () => {
  await using server = await clientOf((_, response) => {
    response.writeHead(200, headers).end('{"data":[],"nextCursor":null,"total":0}')
  })
  await expect(server.client.send('GET', '/v1/webhooks')).rejects.toThrow(/breach of the published spec:\n.*total/)
  expect(neverExercised(directory)).toContain('listWebhooks 200')
})
