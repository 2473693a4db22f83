import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import type { Mode } from '../../contract/mode.ts'
import { lockAccount } from '../../server/database/account-lock.ts'
import { type Handle, inTransaction } from '../../server/database/connection.ts'
import { newId } from '../../server/shared/ids.ts'
import { hasWebhooks } from '../../server/webhooks/queries.ts'
import { createKeyServices } from '../support/api-keys.ts'
import type { Answer, TestClient } from '../support/client.ts'
import { deadUrl } from '../support/fixtures.ts'
import { untilSessionsWait } from '../support/locks.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Two processes of the service on one database, where an account can have few webhooks.
 */

const limit = 5
const definition = { url: deadUrl, events: ['contact.created' as const] }
const options = { roles: { worker: false }, webhooks: { maxPerAccount: limit } }

let one: TestService
let two: TestService

beforeAll(async () => {
  one = await startTestService(options)
  two = await startTestService({ ...options, beside: one })
})
afterAll(async () => {
  await two?.stop()
  await one?.stop()
})

type Account = {
  id: string
  /** One of each mode. */
  keys: readonly string[]
  /** The first process with each. */
  live: TestClient
  test: TestClient
}

async function newAccount(): Promise<Account> {
  const { db } = one.database
  const { accounts, apiKeys: keys } = createKeyServices()
  const { id } = await accounts.create(db, { name: 'Some', plan: 'scale' })
  const keyOf = async (mode: Mode) => {
    const made = await keys.create(db, { accountId: id, mode, permissions: ['full_access'], name: 'A key' })
    return made.key
  }
  const [live, testing] = [await keyOf('live'), await keyOf('test')]
  return { id, keys: [live, testing], live: one.client.as(live), test: one.client.as(testing) }
}

function create(client: TestClient): Promise<Answer> {
  return client.send('POST', '/v1/webhooks', { json: definition })
}

async function statusesOf(answers: readonly Answer[] | Promise<Answer[]>): Promise<number[]> {
  return (await answers).map(({ status }) => status)
}

/** Past the API, as an older version did. Returns their ids. */
async function insertWebhooks(handle: Handle, accountId: string, count: number): Promise<string[]> {
  const webhook = { account_id: accountId, ...definition, secret: Buffer.from('sealed') }
  const ids = Array.from({ length: count }, () => newId('webhook', new Date()))
  await handle
    .insertInto('webhooks')
    .values(ids.map((id) => ({ id, ...webhook })))
    .execute()
  return ids
}

async function countOf(accountId: string): Promise<number> {
  const rows = await one.database.db.selectFrom('webhooks').select('id').where('account_id', '=', accountId).execute()
  return rows.length
}

test('an account can have as many webhooks as the limit says, test and live together', async () => {
  const { live, test: testing } = await newAccount()
  for (const client of [live, testing, live, testing, live]) expect((await create(client)).status).toBe(201)
  for (const client of [live, testing]) {
    const refused = await create(client)
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
    expect(Object(refused.body).error.message).toBe(
      'The account has reached its limit of 5 webhooks, test and live together: delete one first, or ask the operator to raise MAX_WEBHOOKS_PER_ACCOUNT.',
    )
  }
  const other = await newAccount()
  expect((await create(other.live)).status).toBe(201)

  const [webhook] = (await testing.succeed(contract.webhooks.list, { query: {} })).data
  await testing.succeed(contract.webhooks.delete, { params: { id: webhook?.id ?? expect.fail('no webhook') } })
  expect(await statusesOf([await create(live), await create(live)])).toEqual([201, 409])
})

test('creations at once, through two processes, end with exactly the limit', async () => {
  const account = await newAccount()
  const { db } = one.database
  await insertWebhooks(db, account.id, 2)
  const clients = [one, two].flatMap(({ client }) => account.keys.map((key) => client.as(key)))
  // Two more are made, and not committed before all have come to the lock.
  const { answers } = await inTransaction(db, async (trx) => {
    await lockAccount(trx, account.id)
    await insertWebhooks(trx, account.id, 2)
    const creating = Promise.all(Array.from({ length: 5 }, () => clients.map(create)).flat())
    await Promise.race([untilSessionsWait(db, 20), creating])
    return { answers: creating }
  })
  expect(await countOf(account.id)).toBeLessThanOrEqual(limit)
  expect((await statusesOf(answers)).toSorted()).toEqual([201, ...Array.from({ length: 19 }, () => 409)])
  expect(await countOf(account.id)).toBe(limit)
})

test('an account that has more keeps its webhooks, and can change and delete them', async () => {
  const { id: accountId, live } = await newAccount()
  const [first = '', second = '', ...others] = await insertWebhooks(one.database.db, accountId, limit + 3)
  expect((await create(live)).status).toBe(409)
  expect((await live.succeed(contract.webhooks.list, { query: {} })).data).toHaveLength(limit + 3)

  const body = { url: `${deadUrl}/moved`, status: 'disabled' as const }
  expect(await live.succeed(contract.webhooks.update, { params: { id: first }, body })).toMatchObject(body)
  await live.succeed(contract.webhooks.rotateSecret, { params: { id: first }, body: {} })
  expect(await countOf(accountId)).toBe(limit + 3)

  for (const id of [first, second, ...others.slice(0, 1)]) {
    await live.succeed(contract.webhooks.delete, { params: { id } })
    expect((await create(live)).status).toBe(409)
  }
  await live.succeed(contract.webhooks.delete, { params: { id: others[1] ?? '' } })
  expect(await statusesOf([await create(live), await create(live)])).toEqual([201, 409])
})

/** Entries that this session has read of the index lately. */
async function entriesRead(trx: Handle): Promise<number> {
  const { rows } = await sql<{ read: string }>`
    SELECT pg_stat_get_xact_tuples_returned('webhooks_by_account'::regclass) AS read
  `.execute(trx)
  return Number(rows[0]?.read)
}

test('whether an account is at its limit is seen in as many entries of an index, also without statistics', async () => {
  const { db } = one.database
  const { id: accountId } = await newAccount()
  await insertWebhooks(db, accountId, 3_000)
  const lookUp = (count: number) =>
    inTransaction(db, async (trx) => {
      const before = await entriesRead(trx)
      const found = await hasWebhooks(trx, accountId, count)
      return { found, read: (await entriesRead(trx)) - before }
    })
  expect(await lookUp(1_000)).toEqual({ found: true, read: 1_000 })
  expect(await lookUp(3_000)).toEqual({ found: true, read: 3_000 })
  expect(await lookUp(3_001)).toMatchObject({ found: false })
})

test('a creation that is refused keeps no answer for its Idempotency-Key', async () => {
  const { id: accountId, live } = await newAccount()
  const [spare = ''] = await insertWebhooks(one.database.db, accountId, limit)
  const again = () => live.send('POST', '/v1/webhooks', { json: definition, idempotencyKey: 'again' })
  expect((await again()).status).toBe(409)
  await live.succeed(contract.webhooks.delete, { params: { id: spare } })
  const made = await again()
  expect(made.status).toBe(201)
  expect(await again()).toMatchObject({ status: 201, body: made.body })
  expect(await countOf(accountId)).toBe(limit)
})
