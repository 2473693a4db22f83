import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AuditAction } from '../../contract/audit-actions.ts'
import { type AuditEntry, auditLogDays } from '../../contract/audit-log.ts'
import { exampleId } from '../../contract/ids.ts'
import { contract } from '../../contract/index.ts'
import { deleteOldEntries } from '../../server/audit-log/retention.ts'
import { newId } from '../../server/shared/ids.ts'
import { keyThatMay } from '../support/api-keys.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * The audit log over the API: what stands in it, who sees it, and how long it is kept.
 */

let time: TestTime
let service: TestService

beforeAll(async () => {
  time = createTestTime(new Date('2026-03-01T00:00:00Z'))
  service = await startTestService({ roles: { worker: false }, time })
})
afterAll(() => service.stop())

async function newest(limit = 1): Promise<AuditEntry[]> {
  return (await service.client.succeed(contract.auditLog.list, { query: { limit } })).data
}

async function newestOf(targetId: string): Promise<[AuditAction, AuditEntry['details']][]> {
  const entries = await newest(20)
  return entries.filter(({ target }) => target.id === targetId).map(({ action, details }) => [action, details])
}

const webhook = { url: 'http://127.0.0.1:9/hooks?token=secret-of-the-endpoint', events: ['contact.created' as const] }

test('the audit log has an entry for each change of a webhook, and none of its secrets', async () => {
  const created = await service.client.succeed(contract.webhooks.create, { body: webhook })
  const params = { id: created.id }
  await service.client.succeed(contract.webhooks.update, { params, body: { description: 'CRM', status: 'disabled' } })
  await service.client.succeed(contract.webhooks.update, { params, body: { description: 'CRM' } })
  const rotated = await service.client.succeed(contract.webhooks.rotateSecret, { params, body: {} })
  await service.client.succeed(contract.webhooks.delete, { params })
  const mode = 'live'
  expect(await newestOf(created.id)).toEqual([
    ['webhook.deleted', { mode }],
    ['webhook.secret_rotated', { mode }],
    ['webhook.updated', { mode, changes: 'description, status' }],
    ['webhook.created', { mode }],
  ])
  const entries = await newest(4)
  expect(entries.map(({ target }) => target.name)).toEqual(['CRM', 'CRM', '127.0.0.1:9', '127.0.0.1:9'])
  for (const { actor, ipAddress } of entries) {
    expect(actor).toEqual({ type: 'key', id: expect.stringMatching(/^key_/), name: 'A key' })
    expect(ipAddress).toBe('127.0.0.1')
  }
  const rows = JSON.stringify(await service.database.db.selectFrom('audit_log').selectAll().execute())
  for (const secret of [created.secret, rotated.secret, 'secret-of-the-endpoint', service.keys.live]) {
    expect(rows).not.toContain(secret)
  }
})

test('the audit log has an entry for a sending domain that comes, gets new keys and goes', async () => {
  const { id } = await service.client.succeed(contract.domains.create, { body: { name: 'audited.test' } })
  await service.client.succeed(contract.domains.rotateKeys, { params: { id }, body: {} })
  await service.client.succeed(contract.domains.delete, { params: { id } })
  expect(await newestOf(id)).toEqual([
    ['domain.deleted', {}],
    ['domain.keys_rotated', {}],
    ['domain.created', {}],
  ])
  expect((await newest())[0]?.target).toEqual({ type: 'domain', id, name: 'audited.test' })
})

test('the audit log has an entry for what test keys change too, which says so', async () => {
  const { id } = await service.client.as(service.keys.test).succeed(contract.webhooks.create, { body: webhook })
  expect(await newestOf(id)).toEqual([['webhook.created', { mode: 'test' }]])
})

test('the audit log has an entry once for a request that is repeated', async () => {
  const extra = { idempotencyKey: 'audited once' }
  const { id } = await service.client.succeed(contract.webhooks.create, { body: webhook }, extra)
  await service.client.succeed(contract.webhooks.create, { body: webhook }, extra)
  expect(await newestOf(id)).toHaveLength(1)
})

test.each<[string, () => Promise<{ status: number }>]>([
  ['for what is refused', () => service.client.send('POST', '/v1/webhooks', { json: { ...webhook, url: 'ftp://x' } })],
  ['for what is not there', () => service.client.send('DELETE', `/v1/webhooks/${exampleId('webhook')}`)],
  ['for reading', () => service.client.send('GET', '/v1/api-keys')],
])('the audit log has no entry %s', async (_, act) => {
  const [before] = await newest()
  await act()
  expect((await newest())[0]).toEqual(before)
})

test('the audit log has no entry for a change whose transaction fails', async () => {
  await using broken = await startTestService({ roles: { worker: false }, expectErrors: true, time })
  const { db } = broken.database
  const count = async () => (await db.selectFrom('audit_log').select('id').execute()).length
  const before = await count()
  await sql`ALTER TABLE audit_log ADD CONSTRAINT nothing CHECK (false) NOT VALID`.execute(db)
  expect((await broken.client.send('POST', '/v1/webhooks', { json: webhook })).status).toBe(500)
  expect(await count()).toBe(before)
  // And the other way round: without its entry, there is no change.
  expect(await db.selectFrom('webhooks').select('id').execute()).toEqual([])
})

test('the audit log is for a live key that may read it, of the same account', async () => {
  const list = (key: string) => service.client.send('GET', '/v1/audit-log', { key })
  expect((await list(await keyThatMay('audit_log:read', service))).status).toBe(200)
  for (const key of [service.keys.test, service.keys.read, await keyThatMay('api_keys:read', service)]) {
    expect((await list(key)).status).toBe(401)
  }
  const theirs = await service.client.as(service.keys.other).succeed(contract.auditLog.list, { query: {} })
  expect(theirs.data.map(({ action }) => action)).toEqual(['api_key.created'])
})

test('the audit log has pages, newest first, and can be limited by time', async () => {
  await time.advance(60_000)
  const since = time.clock.now().toISOString()
  const ids: string[] = []
  for (const name of ['one.test', 'two.test', 'three.test']) {
    ids.unshift((await service.client.succeed(contract.domains.create, { body: { name } })).id)
    await time.advance(1_000)
  }
  const list = async (query: { limit?: number; cursor?: string; since?: string; until?: string }) =>
    service.client.succeed(contract.auditLog.list, { query })
  const first = await list({ limit: 2 })
  expect(first.data.map(({ target }) => target.id)).toEqual(ids.slice(0, 2))
  const second = await list({ limit: 1, cursor: first.nextCursor ?? '' })
  expect(second.data.map(({ target }) => target.id)).toEqual(ids.slice(2))
  expect((await list({ since })).data.map(({ target }) => target.id)).toEqual(ids)
  const until = first.data[0]?.at ?? ''
  expect((await list({ since, until })).data.map(({ target }) => target.id)).toEqual(ids.slice(1))
  expect((await list({ until: '2020-01-01T00:00:00Z' })).data).toEqual([])
})

test('the audit log is kept for 400 days', async () => {
  const { db } = service.database
  const dayMs = 24 * 3_600_000
  const [kept] = await newest()
  const count = async () => (await db.selectFrom('audit_log').select('id').execute()).length
  const before = await count()
  const at = new Date(time.clock.now().getTime() - dayMs)
  const old = Array.from({ length: 2_001 }, () => ({
    account_id: service.accountId,
    id: newId('auditEntry', at),
    created_at: at,
    action: 'domain.created' as const,
    actor_type: 'command_line' as const,
    actor_id: null,
    actor_name: 'command line',
    target_type: 'domain' as const,
    target_id: 'dom',
    target_name: null,
    ip_address: null,
    details: '{}',
  }))
  await db.insertInto('audit_log').values(old).execute()
  await deleteOldEntries(db, new Date(at.getTime() + auditLogDays * dayMs))
  expect(await count()).toBe(before + 2_001)
  await deleteOldEntries(db, new Date(at.getTime() + auditLogDays * dayMs + 1))
  expect(await count()).toBe(before)
  expect((await newest())[0]).toEqual(kept)
})
