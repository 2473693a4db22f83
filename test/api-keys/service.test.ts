import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { exampleId, idPattern } from '../../contract/ids.ts'
import { type Account, createAccountService } from '../../server/accounts/service.ts'
import { hashOfKey } from '../../server/api-keys/key-format.ts'
import { createApiKeyService, keysChannel } from '../../server/api-keys/service.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { untilSomebodyWaits } from '../support/locks.ts'

const clock = { at: new Date('2026-01-01T12:00:00.123Z'), now: () => clock.at }
const accounts = createAccountService({ clock })
const service = createApiKeyService({ clock, accounts })
let database: TestDatabase
let account: Account

beforeAll(async () => {
  database = await createTestDatabase()
  account = await accounts.create(database.db, { name: 'Acme', plan: 'pro' })
})
afterAll(() => database.drop())

function createKey(name = 'Server') {
  return service.create(database.db, { accountId: account.id, mode: 'live', permissions: ['webhooks:read'], name })
}

test('creating a key shows it once and keeps its hash and its end', async () => {
  const { db } = database
  const created = await createKey()
  const { key, ...shown } = created
  expect(key).toMatch(/^postern_live_/)
  expect(shown).toEqual({
    id: expect.stringMatching(idPattern('apiKey')),
    accountId: account.id,
    mode: 'live',
    name: 'Server',
    permissions: ['webhooks:read'],
    lastFour: key.slice(-4),
    createdAt: '2026-01-01T12:00:00.123Z',
    createdBy: { type: 'command_line', id: null },
    lastUsedAt: null,
    lastUsedFrom: null,
    expiresAt: null,
    allowedAddresses: [],
    revokedAt: null,
  })
  const row = await db.selectFrom('api_keys').selectAll().where('id', '=', created.id).executeTakeFirstOrThrow()
  expect(row.secret_hash).toEqual(hashOfKey(created.key))
  expect(JSON.stringify(row)).not.toContain(created.key.slice('postern_live_'.length))
  expect(await service.list(db, account.id)).toContainEqual(shown)
})

test('creating a key needs an account', async () => {
  const accountId = exampleId('account')
  const creating = service.create(database.db, { accountId, mode: 'test', permissions: ['full_access'], name: 'x' })
  await expect(creating).rejects.toMatchObject({ code: 'not_found', message: expect.stringContaining(accountId) })
})

test('finding a key by its secret answers whose it is and what it may do', async () => {
  const { id, key } = await createKey()
  expect(await service.findBySecret(database.db, key)).toEqual({
    keyId: id,
    actor: { type: 'key', id, name: 'Server' },
    accountId: account.id,
    plan: 'pro',
    mode: 'live',
    permissions: ['webhooks:read'],
    limits: { expiresAt: null, allowedAddresses: [] },
    allowedRanges: [],
    isRevoked: false,
  })
})

test('finding a key by its secret answers null for one that never was, or was deleted', async () => {
  const { db } = database
  const { id, key } = await createKey()
  const last = key.endsWith('a') ? 'b' : 'a'
  expect(await service.findBySecret(db, key.slice(0, -1) + last)).toBeNull()
  await db.deleteFrom('api_keys').where('id', '=', id).execute()
  expect(await service.findBySecret(db, key)).toBeNull()
})

test('revoking a key ends it and tells all processes', async () => {
  const { db, connectionString } = database
  const { id, key } = await createKey()
  const other = await createKey('Other')
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    const told = Promise.withResolvers<string | undefined>()
    client.on('notification', ({ payload }) => told.resolve(payload))
    await client.query(`LISTEN ${keysChannel}`)
    expect(await service.revoke(db, id)).toMatchObject({ id, revokedAt: '2026-01-01T12:00:00.123Z' })
    expect(await told.promise).toBe(id)
  } finally {
    await client.end()
  }
  expect(await service.findBySecret(db, key)).toMatchObject({ keyId: id, isRevoked: true })
  expect(await service.findBySecret(db, other.key)).toMatchObject({ isRevoked: false })
})

test('revoking a key and deleting one tell this process too, when they are committed and before they return', async () => {
  const { db } = database
  const ended: string[] = []
  const here = createApiKeyService({ clock, accounts, onEnded: (id) => ended.push(id) })
  const [revoked, deleted] = [await createKey(), await createKey()]
  await inTransaction(db, async (trx) => {
    await here.revoke(trx, revoked.id)
    expect(ended).toEqual([])
  })
  await here.delete(db, deleted.id)
  expect(ended).toEqual([revoked.id, deleted.id])
})

test('revoking a key a second time leaves the time of the first', async () => {
  const { id } = await createKey()
  const first = await service.revoke(database.db, id)
  clock.at = new Date(clock.at.getTime() + 1_000)
  expect(await service.revoke(database.db, id)).toEqual(first)
})

test('revoking a key that does not exist is refused', async () => {
  await expect(service.revoke(database.db, exampleId('apiKey'))).rejects.toMatchObject({ code: 'not_found' })
})

async function entriesOf(id: string) {
  const { db } = database
  return db.selectFrom('audit_log').selectAll().where('target_id', '=', id).orderBy('id').execute()
}

test('the audit log has an entry for each change of a key, once', async () => {
  const { db } = database
  const { id } = await createKey('Watched')
  await service.revoke(db, id)
  await service.revoke(db, id)
  await service.delete(db, id)
  const shared = { account_id: account.id, actor_type: 'command_line', actor_id: null, target_name: 'Watched' }
  expect(await entriesOf(id)).toMatchObject([
    { ...shared, action: 'api_key.created', details: { mode: 'live', permissions: 'webhooks:read' } },
    { ...shared, action: 'api_key.revoked' },
    { ...shared, action: 'api_key.deleted' },
  ])
})

test('the audit log has no entry for a change that is rolled back', async () => {
  const { db } = database
  const { id } = await createKey('Kept')
  const undone = inTransaction(db, async (trx) => {
    await service.revoke(trx, id)
    throw new Error('undone')
  })
  await expect(undone).rejects.toThrow('undone')
  expect((await entriesOf(id)).map(({ action }) => action)).toEqual(['api_key.created'])
})

test('the first account is made once, with a key of each mode', async () => {
  await using fresh = await createTestDatabase()
  const { db } = fresh
  const first = await service.ensureFirstAccount(db, { plan: 'scale' })
  expect(await service.ensureFirstAccount(db, { plan: 'scale' })).toBeNull()
  expect(first?.account.plan).toBe('scale')
  expect(await accounts.list(db)).toEqual([first?.account])
  for (const mode of ['test', 'live'] as const) {
    const created = first?.[`${mode}Key`]
    expect(await service.findBySecret(db, created?.key ?? '')).toMatchObject({
      keyId: created?.id,
      accountId: first?.account.id,
      mode,
      permissions: ['full_access'],
    })
  }
  expect(await service.list(db)).toHaveLength(2)
})

test('the first account is made once by two processes that start at once', async () => {
  await using fresh = await createTestDatabase()
  const { db } = fresh
  let second: Promise<unknown> | undefined
  const first = await inTransaction(db, async (trx) => {
    const made = await service.ensureFirstAccount(trx, { plan: 'scale' })
    second = service.ensureFirstAccount(db, { plan: 'scale' })
    await Promise.race([second, untilSomebodyWaits(db)])
    return made
  })
  expect(await second).toBeNull()
  expect(await accounts.list(db)).toEqual([first?.account])
})

test('the first account is not made where there is one', async () => {
  expect(await service.ensureFirstAccount(database.db, { plan: 'scale' })).toBeNull()
  expect(await accounts.list(database.db)).toEqual([account])
})
