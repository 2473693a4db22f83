import { afterAll, beforeAll, expect, test } from 'vitest'
import { pathOf, unknownParameters } from '../support/fixtures.ts'
import { operations } from '../support/published-spec.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService

beforeAll(async () => {
  // Without request logs, so that a list of requests is the same for GET as for HEAD before it.
  service = await startTestService({ roles: { worker: false }, requestLogs: false })
})
afterAll(() => service.stop())

const paths = [...Map.groupBy(operations, ({ template }) => template)].map(([template, there]) => {
  const [operation] = there
  const path = operation === undefined ? template : pathOf(operation, unknownParameters(operation))
  return { template, path, methods: there.map(({ method }) => method) }
})

test.each(paths)('$template refuses other methods with 405 and says which it has', async ({ path, methods }) => {
  const allowed: string[] = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].toSorted()
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']) {
    if (allowed.includes(method)) continue
    const answer = await service.client.send(method, path)
    expect([method, answer.status]).toEqual([method, 405])
    expect(answer.headers.allow?.split(', ').toSorted()).toEqual(allowed)
  }
})

test.each(paths.filter(({ methods }) => methods.includes('GET')))(
  'HEAD $template answers as GET does',
  async ({ path }) => {
    const [head, get] = [await service.client.send('HEAD', path), await service.client.send('GET', path)]
    expect(head.status).toBe(get.status)
    expect(head.headers['content-length']).toBe(get.headers['content-length'])
  },
)
