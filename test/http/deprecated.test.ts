import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { routesOf } from '../../openapi/routes.ts'
import { createFixtures, pathOf } from '../support/fixtures.ts'
import { operationById } from '../support/published-spec.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
const [early, late] = ['2026-03-01T00:00:00Z', '2999-01-01T00:00:00Z']

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
})
afterAll(() => service?.stop())

const deprecatedParameters = routesOf(contract).flatMap(({ metadata: { operationId, deprecations } }) =>
  deprecations.flatMap(({ parameter, ...rest }) =>
    parameter === undefined ? [] : { operationId, parameter, ...rest },
  ),
)

describe.each(deprecatedParameters)(
  '$parameter of $operationId',
  ({ operationId, parameter, use, deprecatedAt, sunsetAt }) => {
    async function list(query: string) {
      const operation = operationById(operationId)
      const path = pathOf(operation, await createFixtures(service).parametersFor(operation))
      return service.client.send('GET', `${path}?${query}`)
    }

    test('a deprecated parameter works for a year at least, and the answer says until when', async () => {
      const { status, headers, body } = await list(`${parameter}=${late}`)
      expect([status, Object(body).data]).toEqual([200, []])
      expect(headers).toMatchObject({
        deprecation: `@${Date.parse(deprecatedAt) / 1000}`,
        sunset: new Date(sunsetAt).toUTCString(),
      })
      expect(Date.parse(sunsetAt) - Date.parse(deprecatedAt)).toBeGreaterThanOrEqual(365 * 24 * 3_600_000)
    })

    test('a deprecated parameter has a successor that is answered without a word', async () => {
      const { status, headers } = await list(`${use}=${late}`)
      expect(status).toBe(200)
      expect([headers.deprecation, headers.sunset]).toEqual([undefined, undefined])
    })

    test('a deprecated parameter may stand beside its successor with the same value alone', async () => {
      expect((await list(`${use}=${early}&${parameter}=2026-03-01T01:00:00%2B01:00`)).status).toBe(200)
      const { status, body, headers } = await list(`${use}=${early}&${parameter}=${late}`)
      expect([status, Object(body).error.code]).toEqual([422, 'rule_violation'])
      expect(Object(body).error.details).toMatchObject([{ path: `query.${parameter}` }])
      expect(headers.sunset).toBeUndefined()
    })

    test('a deprecated parameter is marked in the published spec', () => {
      expect(operationById(operationId).deprecatedParameters).toContain(parameter)
    })
  },
)

test('events are limited by since and until, both ways round', async () => {
  const { client } = service
  await client.succeed(contract.subscribers.create, { body: { email: 'first@example.com' } })
  await client.succeed(contract.subscribers.create, { body: { email: 'second@example.com' } })
  const timeOf = (event: object) => ('created' in event ? String(event.created) : '')
  const { data } = await client.succeed(contract.events.list, { query: {} })
  const [newest = {}] = data
  const until = timeOf(newest)
  const earlier = data.filter((event) => timeOf(event) < until).map(({ id }) => id)
  for (const order of ['asc', 'desc'] as const) {
    const before = await client.succeed(contract.events.list, { query: { until, order } })
    expect(before.data.map(({ id }) => id).toSorted()).toEqual(earlier.toSorted())
    const since = await client.succeed(contract.events.list, { query: { since: until, order } })
    expect(since.data.map(({ id }) => id)).toContain(Object(newest).id)
    const none = await client.succeed(contract.events.list, { query: { since: until, until, order } })
    expect(none.data).toEqual([])
  }
})
