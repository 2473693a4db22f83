import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { lastUsesOfAccounts } from '../../server/api-keys/last-uses-of-accounts.ts'
import { migrations } from '../../server/database/migrate.ts'
import { createKeyServices } from '../support/api-keys.ts'
import { patienceMs } from '../support/patience.ts'
import { type Person, signUp, signUpOperator } from '../support/people.ts'
import { silence, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { bodyOf, call, codeOf, named, ofAccounts, ofOperators } from '../support/session-operations.ts'

let service: TestService
let operator: Person

beforeAll(async () => {
  service = await startTestService()
  operator = await signUpOperator(service)
})
afterAll(() => service.stop())

async function get(path: string, person = operator) {
  const { status, body } = await person.send('GET', path)
  return { status, body: Object(body) }
}

test('operators alone call the operations below /v1/operator, and these are all there', async () => {
  const routes = Object.values(contract).flatMap((group) => Object.values(group))
  const found = routes.filter(({ metadata }) => metadata.caller === 'operator')
  expect(found).toEqual(routes.filter(({ path }) => path.startsWith('/v1/operator/')))
  expect(found.length).toBeGreaterThan(0)
})

test.each(named(ofOperators))('%s refuses a user who is no operator with 401', async (id, operation) => {
  const person = await signUp(service)
  const parameters = ofAccounts.includes(id) ? { id: service.accountId } : {}
  const answer = await call(service, operation, { ...bodyOf(operation), person, parameters })
  expect([answer.status, codeOf(answer)]).toEqual([401, 'authentication_error'])
})

test('a user who stops being an operator is refused at the next request, an owner of the account too', async () => {
  const person = await signUp(service)
  expect((await get('/v1/operator/plans', person)).status).toBe(401)
  const mark = (isOperator: boolean) =>
    service.database.db.updateTable('users').set({ is_operator: isOperator }).where('id', '=', person.userId).execute()
  await mark(true)
  expect((await get('/v1/operator/plans', person)).status).toBe(200)
  await mark(false)
  const { status, body } = await get('/v1/operator/plans', person)
  expect(status).toBe(401)
  expect(body.error.message).toContain('users operator')
})

const list = async (query = '') => (await get(`/v1/operator/accounts${query}`)).body

test('accounts are listed newest first, page by page, with the last use of their keys', async () => {
  const first = await list('?limit=2')
  const second = await list(`?limit=2&cursor=${first.nextCursor}`)
  const all = [...first.data, ...second.data]
  expect(all.map(({ name }) => name).toSorted()).toEqual(['Limited', 'Ours', 'Theirs'])
  expect(all.map(({ id }) => id)).toEqual(
    all
      .map(({ id }) => id)
      .toSorted()
      .toReversed(),
  )
  expect(second.nextCursor).toBeNull()
  const ours = all.find(({ name }) => name === 'Ours')
  expect(ours).toMatchObject({ id: service.accountId, plan: 'scale' })
  await service.client.send('GET', '/v1/event-types')
  await expect.poll(async () => (await list('?search=ours')).data[0].lastUsedAt, { timeout: patienceMs }).not.toBeNull()
  expect((await list('?search=theirs')).data[0].lastUsedAt).toBeNull()
})

test('accounts are found by the beginning of their name in any letter case, or of their id', async () => {
  const names = async (search: string) =>
    (await list(`?search=${encodeURIComponent(search)}`)).data.map(({ name }: { name: string }) => name)
  expect(await names('OU')).toEqual(['Ours'])
  expect(await names(service.accountId.slice(0, 30))).toEqual(['Ours'])
  expect(await names('urs')).toEqual([])
  // Neither a pattern nor SQL.
  for (const hostile of ['%', '_', "x' OR 1=1 --", '\\', '\u0001']) expect(await names(hostile)).toEqual([])
})

test('accounts refuse what is too long, empty, or of no page', async () => {
  for (const query of ['?search=', `?search=${'x'.repeat(101)}`, '?cursor=x', '?limit=101']) {
    expect((await get(`/v1/operator/accounts${query}`)).status).toBe(400)
  }
})

test('accounts show what they use in live mode, whoever the operator is a member with', async () => {
  const { accounts } = createKeyServices(service.clock)
  const { id } = await accounts.create(service.database.db, { name: '<b>Acme</b>', plan: 'one' })
  expect((await get(`/v1/operator/accounts/${id}`)).body).toMatchObject({
    id,
    name: '<b>Acme</b>',
    plan: 'one',
    mode: 'live',
    lastUsedAt: null,
    requests: { limit: 1, used: 0, busiest: null },
    apiKeys: { used: 0, limit: 100 },
  })
  const member = await signUp(service, { accountId: id, role: 'viewer' })
  const { body } = await get(`/v1/operator/accounts/${id}/members`)
  expect(body.data).toMatchObject([{ userId: member.userId, role: 'viewer' }])
  // Being an operator makes nobody a member.
  expect((await operator.send('GET', '/v1/emails', { accountId: id })).status).toBe(404)
})

test('accounts get another plan, which holds and is in their audit log once', async () => {
  const { db } = service.database
  const { accounts, apiKeys } = createKeyServices(service.clock)
  const { id } = await accounts.create(db, { name: 'Growing', plan: 'one' })
  const { key } = await apiKeys.create(db, { accountId: id, mode: 'live', permissions: ['full_access'], name: 'A' })
  for (let times = 0; times < 2; times += 1) {
    const json = { plan: 'scale' }
    const { status, body } = await operator.send('PATCH', `/v1/operator/accounts/${id}`, { json })
    expect([status, body]).toEqual([200, expect.objectContaining({ id, plan: 'scale' })])
  }
  const { data } = await service.client.as(key).succeed(contract.auditLog.list, { query: {} })
  expect(data.filter(({ action }) => action === 'account.plan_changed')).toEqual([
    expect.objectContaining({
      actor: { type: 'user', id: operator.userId, name: 'Ada Lovelace' },
      target: { type: 'account', id, name: 'Growing' },
      details: { from: 'one', to: 'scale' },
      ipAddress: '127.0.0.1',
    }),
  ])
  expect((await service.client.as(key).succeed(contract.account.get, {})).requests.limit).toBe(1_000_000)
})

test.each(['none', 'constructor', '__proto__'])('accounts keep their plan when there is no plan %s', async (plan) => {
  const path = `/v1/operator/accounts/${service.accountId}`
  const { status, body } = await operator.send('PATCH', path, { json: { plan } })
  expect([status, Object(body).error.details[0].path]).toEqual([422, 'body.plan'])
  expect((await get(path)).body.plan).toBe('scale')
})

test('accounts have the plans of the settings, the smallest first', async () => {
  expect((await get('/v1/operator/plans')).body).toEqual({
    data: [
      { name: 'one', requestsPerMinute: 1 },
      { name: 'scale', requestsPerMinute: 1_000_000 },
    ],
  })
})

test('accounts have the last use of their newest keys', async () => {
  const { db } = service.database
  const { accounts, apiKeys } = createKeyServices(service.clock)
  const { id } = await accounts.create(db, { name: 'Used', plan: 'one' })
  const key = () => apiKeys.create(db, { accountId: id, mode: 'live', permissions: ['full_access'], name: 'A' })
  const [one, other] = [await key(), await key()]
  const use = (keyId: string, at: Date) =>
    db.updateTable('api_keys').set({ last_used_at: at }).where('id', '=', keyId).execute()
  await use(one.id, new Date('2026-03-02T00:00:00.000Z'))
  await use(other.id, new Date('2026-03-01T00:00:00.000Z'))
  expect(await lastUsesOfAccounts(db, [id, 'acc_none'])).toEqual(new Map([[id, new Date('2026-03-02T00:00:00.000Z')]]))
})

const instance = async () => (await get('/v1/operator/instance')).body

test('the instance has its versions and its processes, which leave when they stop', async () => {
  await using other = await startTestService({ beside: service, roles: { worker: false } })
  await expect
    .poll(async () => (await instance()).processes.map(({ roles }: { roles: string[] }) => roles.join()), {
      timeout: patienceMs,
    })
    .toEqual(['api', 'api,worker'])
  const { versions, processes } = await instance()
  expect(processes[1]).toMatchObject({ pid: process.pid, node: process.version, isAlive: true })
  expect(versions).toMatchObject({ node: process.version, migration: Object.keys(migrations).at(-1) })
  expect(versions.postern).toBe(processes[1].version)
  expect(versions.postgresql).toMatch(/^\d+/)
  await other.stop()
  expect((await instance()).processes).toHaveLength(1)
})

test('the instance tells a process that was killed from one that runs, and forgets it after a day', async () => {
  const { db } = service.database
  const add = (id: string, age: string) =>
    sql`
      INSERT INTO processes VALUES (${id}, ${'<img>'}, 1, '{worker}', '0', 'v1', now(), now() - ${age}::interval)
    `.execute(db)
  await add('00000000-0000-4000-8000-000000000001', '61 seconds')
  const found = async () => (await instance()).processes.find(({ host }: { host: string }) => host === '<img>')?.isAlive
  expect(await found()).toBe(false)
  await db.deleteFrom('processes').where('host', '=', '<img>').execute()
  await add('00000000-0000-4000-8000-000000000002', '25 hours')
  await using _other = await startTestService({ beside: service, roles: { worker: false } })
  await expect.poll(found, { timeout: patienceMs }).toBeUndefined()
})

test('the instance counts the events that wait for their fan-out', async () => {
  await using api = await startTestService({ roles: { worker: false } })
  const person = await signUpOperator(api)
  const read = async () => Object((await person.send('GET', '/v1/operator/instance')).body)
  expect(await read()).toMatchObject({ queues: { outbox: 0 }, undeliveredSeconds: 0, destinations: [] })
  await api.client.succeed(contract.subscribers.create, { body: { email: 'ada@example.com' } })
  expect(await read()).toMatchObject({ queues: { outbox: 1 } })
})

test('the instance names hosts with deliveries that are late, and no more of their URLs', async () => {
  await using receiver = await startReceiver()
  await using slow = await startTestService({ delivery: { places: 4, endpointMax: 1 } })
  const person = await signUpOperator(slow)
  receiver.respond(silence)
  const url = `${receiver.url}/secret-path?token=secret`
  await slow.client.succeed(contract.webhooks.create, { body: { url, events: ['subscriber.added'] } })
  for (let count = 0; count < 5; count += 1) {
    await slow.client.succeed(contract.subscribers.create, { body: { email: `ada${count}@example.com` } })
  }
  const read = async () => await person.send('GET', '/v1/operator/instance')
  const first = async () => Object((await read()).body).destinations[0]
  await expect.poll(first, { timeout: patienceMs }).toMatchObject({
    accountId: slow.accountId,
    host: new URL(receiver.url).hostname,
    waitsFor: 'endpoint_limit',
  })
  // While nothing of it ends, a second attempt probes it now and then.
  expect([1, 2]).toContain((await first()).inFlight)
  expect(Date.parse((await first()).dueSince)).toBeLessThanOrEqual(Date.now())
  expect((await read()).text).not.toContain('secret')
})

test('the instance has the size of its tables, and how long what is kept', async () => {
  const { body } = await get('/v1/operator/storage')
  const sizes = body.tables.map(({ bytes }: { bytes: number }) => bytes)
  expect(sizes).toEqual(sizes.toSorted((one: number, other: number) => other - one))
  expect(body.tables.map(({ name }: { name: string }) => name)).toEqual(
    expect.arrayContaining(['accounts', 'emails', 'pgboss.queue', 'pgboss.job (deliveries)']),
  )
  expect(body.databaseBytes).toBeGreaterThan(sizes[0])
  expect(body.retention).toContainEqual({
    what: 'events, deliveries and emails',
    days: 30,
    setting: 'RETENTION_DAYS',
  })
})
