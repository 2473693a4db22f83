import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type LastUses, startLastUses } from '../../server/api-keys/last-used.ts'
import type { Db } from '../../server/database/connection.ts'
import { createKeyServices } from '../support/api-keys.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const clock = { at: Date.parse('2026-01-01T12:00:00Z'), now: () => new Date(clock.at) }
const { accounts, apiKeys } = createKeyServices(clock)
let database: TestDatabase
let accountId: string
/** The statements that were sent to write uses. */
let statements: number

beforeAll(async () => {
  database = await createTestDatabase()
  accountId = (await accounts.create(database.db, { name: 'Acme', plan: 'pro' })).id
})
afterAll(() => database.drop())
beforeEach(() => {
  statements = 0
})

type Key = { accountId: string; keyId: string }

async function newKey(): Promise<Key> {
  const { id } = await apiKeys.create(database.db, {
    accountId,
    mode: 'live',
    permissions: ['full_access'],
    name: 'A key',
  })
  return { accountId, keyId: id }
}

/** Counts the statements that change keys. */
function counted(db: Db): Db {
  return db.withPlugin({
    transformQuery: ({ node }) => {
      if (node.kind === 'RawNode') statements += 1
      return node
    },
    transformResult: async ({ result }) => result,
  })
}

function start(options: { maxKeys?: number } = {}): LastUses {
  const addressOf = (from: string) => (from === '' ? null : from)
  return startLastUses({ db: counted(database.db), clock, addressOf, logger: pino({ enabled: false }), ...options })
}

async function lastUseOf({ keyId }: Key) {
  const row = await database.db
    .selectFrom('api_keys')
    .select(['last_used_at', 'last_used_from'])
    .where('id', '=', keyId)
    .executeTakeFirstOrThrow()
  return [row.last_used_at?.toISOString() ?? null, row.last_used_from]
}

test('a use is written behind it, once a minute, with the last address', async () => {
  const key = await newKey()
  const uses = start()
  uses.saw(key, '203.0.113.1')
  await uses.write()
  expect(await lastUseOf(key)).toEqual(['2026-01-01T12:00:00.000Z', '203.0.113.1'])
  clock.at += 59_999
  uses.saw(key, '203.0.113.2')
  await uses.write()
  expect(await lastUseOf(key)).toEqual(['2026-01-01T12:00:00.000Z', '203.0.113.1'])
  clock.at += 1
  uses.saw(key, 'x'.repeat(16_000))
  await uses.write()
  expect(await lastUseOf(key)).toEqual(['2026-01-01T12:01:00.000Z', null])
  expect(statements).toBe(2)
  clock.at += 60_000
  await uses.write()
  expect(statements).toBe(2)
  await uses.stop()
})

test('many keys are written by one statement', async () => {
  const keys = await Promise.all(Array.from({ length: 50 }, newKey))
  const uses = start()
  for (const key of keys) for (let count = 0; count < 20; count++) uses.saw(key, '203.0.113.1')
  await uses.write()
  expect(statements).toBe(1)
  expect(await Promise.all(keys.map(lastUseOf))).toEqual(keys.map(() => [clock.now().toISOString(), '203.0.113.1']))
  await uses.stop()
})

test('a flood of keys takes bounded memory and bounded statements', async () => {
  const [forgotten, remembered] = [await newKey(), await newKey()]
  const uses = start({ maxKeys: 2_500 })
  uses.saw(forgotten, '203.0.113.1')
  for (let count = 0; count < 100_000; count++) uses.saw({ accountId, keyId: `key_${count}` }, '203.0.113.1')
  uses.saw(remembered, '203.0.113.1')
  await uses.write()
  expect(statements).toBe(3)
  expect(await lastUseOf(forgotten)).toEqual([null, null])
  expect(await lastUseOf(remembered)).toEqual([clock.now().toISOString(), '203.0.113.1'])
  await uses.stop()
})

test('stopping writes what is left', async () => {
  const key = await newKey()
  const uses = start()
  uses.saw(key, '203.0.113.1')
  await uses.write()
  clock.at += 1_000
  uses.saw(key, '203.0.113.2')
  await uses.stop()
  expect(await lastUseOf(key)).toEqual([clock.now().toISOString(), '203.0.113.2'])
})

test('a later use that another process has written stays', async () => {
  const key = await newKey()
  const [slow, quick] = [start(), start()]
  // Behind the first look of each, which would write at once.
  await Promise.all([slow.write(), quick.write()])
  slow.saw(key, '203.0.113.1')
  clock.at += 1_000
  quick.saw(key, '203.0.113.2')
  await quick.write()
  await slow.write()
  expect(await lastUseOf(key)).toEqual([clock.now().toISOString(), '203.0.113.2'])
  await Promise.all([slow.stop(), quick.stop()])
})

test('a key that is being revoked is not waited for, and a deleted one is no fault', async () => {
  const [locked, deleted, free] = [await newKey(), await newKey(), await newKey()]
  await apiKeys.delete(database.db, deleted.keyId)
  const uses = start()
  await database.db.transaction().execute(async (trx) => {
    await trx.selectFrom('api_keys').select('id').where('id', '=', locked.keyId).forUpdate().execute()
    for (const key of [locked, deleted, free]) uses.saw(key, '203.0.113.1')
    await uses.write()
  })
  expect(await lastUseOf(locked)).toEqual([null, null])
  expect(await lastUseOf(free)).toEqual([clock.now().toISOString(), '203.0.113.1'])
  await uses.stop()
})

test("a key of an account is not written under another one's name", async () => {
  const key = await newKey()
  const uses = start()
  uses.saw({ ...key, accountId: 'acc_other' }, '203.0.113.1')
  await uses.write()
  expect(await lastUseOf(key)).toEqual([null, null])
  await uses.stop()
})
