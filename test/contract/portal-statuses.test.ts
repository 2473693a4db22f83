import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { pathOf } from '../support/fixtures.ts'
import { pageHeaders } from '../support/people.ts'
import { type Customer, openPortal } from '../support/portal.ts'
import { operationById, operations } from '../support/published-spec.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

/*
 * The operation of the published spec that only customers in the portal may call is driven into the statuses that
 * portal.test.ts leaves out. Other operations are driven into theirs by every-status.test.ts and
 * session-statuses.test.ts.
 */

const operation = operationById('getPortalSession')
const { method } = operation
const path = pathOf(operation, {})

test('getPortalSession alone is for customers only', () => {
  expect(operations.filter(({ caller }) => caller === 'portal').map(({ id }) => id)).toEqual(['getPortalSession'])
})

const codeOf = (answer: { body: unknown }) => Object(answer.body).error?.code

/** Calls the operation as the page of the portal does. */
function callFromPage(service: TestService, { cookie, sessionId }: Customer, headers: Record<string, string> = {}) {
  const ofPage = { ...pageHeaders(service.url), cookie, 'x-postern-portal': sessionId }
  return service.client.send(method, path, { key: null, headers: { ...ofPage, ...headers } })
}

test('getPortalSession refuses an unknown query key with 400, and a page of others with 403', async () => {
  await using service = await startTestService({ roles: { worker: false } })
  const customer = await openPortal(service)
  expect((await callFromPage(service, customer)).status).toBe(200)
  const unknown = await customer.send(method, `${path}?unexpected=1`)
  expect([unknown.status, codeOf(unknown)]).toEqual([400, 'validation_error'])
  const foreign = await callFromPage(service, customer, { 'x-postern-dashboard': '' })
  expect([foreign.status, codeOf(foreign)]).toEqual([403, 'forbidden_origin'])
})

test('getPortalSession answers 500 and nothing of the inside on a fault', async () => {
  await using service = await startTestService({ roles: { worker: false }, expectErrors: true })
  const customer = await openPortal(service)
  await sql`ALTER TABLE portal_sessions RENAME TO lost`.execute(service.database.db)
  const answer = await customer.send(method, path)
  expect([answer.status, codeOf(answer)]).toEqual([500, 'internal_error'])
  expect(answer.text).not.toMatch(/relation|does not exist|select|\.ts|stack/i)
})

test('getPortalSession answers 503 on a service that cannot reach its database', async () => {
  let line: TcpProxy | undefined
  await using service = await startTestService({
    roles: { worker: false },
    expectErrors: true,
    async connectionString(direct) {
      const url = new URL(direct)
      line = await startTcpProxy({ host: url.hostname, port: Number(url.port || 5432) })
      url.host = `127.0.0.1:${line.port}`
      return url.toString()
    },
  })
  const customer = await openPortal(service)
  await line?.cut()
  const answer = await customer.send(method, path)
  expect([answer.status, codeOf(answer)]).toEqual([503, 'unavailable'])
  await line?.[Symbol.asyncDispose]()
})
