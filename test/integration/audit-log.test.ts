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
import { csvFile } from '../support/fixtures.ts'
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

test('the audit log says who sent, paused and deleted a campaign, and when it was to start', async () => {
  const client = service.client.as(service.keys.test)
  const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name: 'News' } })
  const content = { from: 'hello@example.com', subject: 'Not for the log', content: { text: 'Hello' } }
  const draft = async () => {
    const body = { name: 'Spring', audienceId, ...content }
    return { params: { id: (await client.succeed(contract.campaigns.create, { body })).id } }
  }
  const now = await draft()
  await client.succeed(contract.campaigns.send, { ...now, body: {} })
  // As the worker does, which this service has not.
  const { db } = service.database
  await db.updateTable('campaigns').set({ status: 'sending' }).where('id', '=', now.params.id).execute()
  await client.succeed(contract.campaigns.pause, { ...now, body: {} })
  await client.succeed(contract.campaigns.resume, { ...now, body: {} })
  await client.succeed(contract.campaigns.cancel, { ...now, body: {} })
  await client.succeed(contract.campaigns.delete, now)
  const mode = 'test'
  expect(await newestOf(now.params.id)).toEqual([
    ['campaign.deleted', { mode }],
    ['campaign.canceled', { mode }],
    ['campaign.resumed', { mode }],
    ['campaign.paused', { mode }],
    ['campaign.sent', { mode, audienceId }],
  ])
  expect((await newest())[0]?.target).toEqual({ type: 'campaign', id: now.params.id, name: 'Spring' })
  const later = await draft()
  const scheduledAt = new Date(time.clock.now().getTime() + 3_600_000).toISOString()
  await client.succeed(contract.campaigns.send, { ...later, body: { scheduledAt } })
  expect(await newestOf(later.params.id)).toEqual([['campaign.scheduled', { mode, audienceId, scheduledAt }]])
  expect(JSON.stringify(await newest(20))).not.toContain(content.subject)
})

test('the audit log says who lifted a suppression and deleted a person, and no address', async () => {
  const address = 'to-be-forgotten@example.com'
  const person = await service.client.succeed(contract.subscribers.create, { body: { email: address } })
  const { id } = await service.client.succeed(contract.suppressions.create, { body: { address } })
  const unsubscribed = { id: newId('suppression', time.clock.now()), created_at: time.clock.now() }
  await service.client.succeed(contract.suppressions.delete, { params: { address } })
  expect(await newestOf(id)).toEqual([['suppression.deleted', { reason: 'manual' }]])
  await service.database.db
    .insertInto('suppressions')
    .values({
      ...unsubscribed,
      account_id: service.accountId,
      address,
      address_key: address,
      reason: 'unsubscribe',
      source: 'unsubscribe_link',
      email_id: null,
    })
    .execute()
  const params = { id: person.id }
  for (const status of ['active', 'active'] as const) {
    await service.client.succeed(contract.subscribers.update, { params, body: { status } })
  }
  const lifted = { reason: 'unsubscribe', subscriberId: person.id }
  expect(await newestOf(unsubscribed.id)).toEqual([['suppression.deleted', lifted]])
  await service.client.succeed(contract.subscribers.delete, { params })
  expect(await newestOf(person.id)).toEqual([['subscriber.deleted', {}]])
  expect(JSON.stringify(await newest(20))).not.toContain(address)
})

test('the audit log has one entry for an import, and none for a file that is refused', async () => {
  const { id: audienceId } = await service.client.succeed(contract.audiences.create, { body: { name: 'Imported' } })
  const path = `/v1/imports?audienceId=${audienceId}&fileName=people.csv`
  const [before] = await newest()
  const refused = await service.client.send('POST', path, { ...csvFile, raw: 'name\nAda\n' })
  expect(refused.status).toBe(422)
  expect((await newest())[0]).toEqual(before)
  const { body } = await service.client.send('POST', path, csvFile)
  const params = { id: String(Object(body).id) }
  for (let times = 0; times < 2; times++) await service.client.succeed(contract.imports.cancel, { params, body: {} })
  const details = { mode: 'live', audienceId }
  expect(await newestOf(params.id)).toEqual([
    ['import.canceled', details],
    ['import.created', details],
  ])
  expect((await newest())[0]?.target).toEqual({ type: 'import', id: params.id, name: 'people.csv' })
})

test('the audit log has one entry for a recovery, however often it is asked for while it runs', async () => {
  const { id } = await service.client.succeed(contract.webhooks.create, { body: webhook })
  const since = '2026-02-28T00:00:00.000Z'
  const recover = () => service.client.succeed(contract.deliveries.recover, { params: { id }, body: { since } })
  const { id: recoveryId } = await recover()
  expect((await recover()).started).toBe(false)
  expect(await newestOf(id)).toEqual([
    ['webhook.recovery_started', { mode: 'live', recoveryId, since }],
    ['webhook.created', { mode: 'live' }],
  ])
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
