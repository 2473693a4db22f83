import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
})
afterAll(() => service.stop())

test('a user of the dashboard makes a key that says so, as the audit log does', async () => {
  const { userId, send } = await signUp(service, { role: 'developer' })
  const json = { name: 'By a person', permissions: ['full_access'] }
  const { status, body } = await send('POST', '/v1/api-keys', { json })
  expect(status).toBe(201)
  const { id, key } = Object(body)
  expect(body).toMatchObject({ mode: 'live', createdBy: { type: 'user', id: userId }, expiresAt: null })
  expect((await service.client.send('GET', '/v1/event-types', { key })).status).toBe(200)
  const [entry] = (await service.client.succeed(contract.auditLog.list, { query: { limit: 1 } })).data
  expect(entry).toMatchObject({ actor: { type: 'user', id: userId, name: 'Ada Lovelace' }, target: { id } })
})

test('a user of the dashboard makes no key with a permission that keys do not have', async () => {
  const { send } = await signUp(service, { role: 'owner' })
  const json = { name: 'Members', permissions: ['members:write'] }
  expect((await send('POST', '/v1/api-keys', { json })).status).toBe(400)
})

test.each(['marketer', 'viewer'] as const)(
  'a user of the dashboard with the role %s neither sees nor makes keys',
  async (role) => {
    const { send } = await signUp(service, { role })
    expect((await send('GET', '/v1/api-keys')).status).toBe(401)
    expect((await send('GET', '/v1/audit-log')).status).toBe(401)
    const json = { name: 'x', permissions: ['events:read'] }
    expect((await send('POST', '/v1/api-keys', { json })).status).toBe(401)
  },
)
