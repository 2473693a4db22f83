import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Db } from '../../server/database/connection.ts'
import { type Caller, setCaller } from '../../server/http/caller.ts'
import { createEndpoint } from '../../server/http/idempotency.ts'
import { claimKey, deleteExpiredIdempotencyKeys, keepAnswer, releaseKey } from '../../server/http/idempotency-keys.ts'
import { secretBox } from '../../server/secrets/secret-box.ts'
import { DomainError } from '../../server/shared/errors.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { type Answer, type Api, deprecation, startApi, type Work } from './gates.ts'

const start = Date.parse('2026-01-01T00:00:00Z')
const dayMs = 24 * 3_600_000
const minuteMs = 60_000
const clock = { at: start, now: () => new Date(clock.at) }
let database: TestDatabase
let db: Db
let api: Api
let caller: Caller
/** The work of the routes. */
let work: Work
/** How often the routes did their work. */
let runs: number

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  api = await startApi({
    gates: [
      (req, _res, next) => {
        setCaller(req, caller)
        next()
      },
    ],
    endpoint: createEndpoint({ db, clock, secretBox: secretBox(Buffer.alloc(32, 3)) }),
    work: (context, body) => {
      runs += 1
      return work(context, body)
    },
  })
})
afterAll(async () => {
  await api[Symbol.asyncDispose]()
  await database.drop()
})
beforeEach(async () => {
  clock.at = start
  runs = 0
  work = async () => runs
  caller = await newCaller()
})

async function newCaller(): Promise<Caller> {
  const accountId = newId('account', new Date())
  await db.insertInto('accounts').values({ id: accountId, name: 'Acme', plan: 'pro' }).execute()
  return {
    actor: { type: 'key', id: newId('apiKey', new Date()), name: 'A key' },
    accountId,
    plan: 'pro',
    mode: 'live',
    permissions: ['full_access'],
    limits: { expiresAt: null, allowedAddresses: [] },
  }
}

function post(path: string, key: string, body = '{}'): Promise<Answer> {
  return api.send('POST', path, { headers: [['Idempotency-Key', key]], body })
}

function addAudience(name: string): Work {
  return async ({ handle, scope }) => {
    await handle
      .insertInto('audiences')
      .values({ id: newId('audience', new Date()), account_id: scope.accountId, name, description: null })
      .execute()
    return runs
  }
}

function audiences() {
  return db.selectFrom('audiences').select('name').where('account_id', '=', caller.accountId).execute()
}

function keptRows() {
  return db.selectFrom('idempotency_keys').selectAll().where('account_id', '=', caller.accountId).execute()
}

/** Work that goes on until told, and tells when it began. */
function slowWork(first: Work = async () => runs) {
  const began = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  work = async (context, body) => {
    work = async () => runs
    began.resolve()
    await end.promise
    return first(context, body)
  }
  return { began: began.promise, finish: end.resolve }
}

describe.each([
  ['with its work', '/with-work', 201],
  ['after its work', '/after-work', 200],
])('an answer kept %s', (_, path, status) => {
  test('a kept answer is sent again, and marked as such', async () => {
    const first = await post(path, 'k')
    const second = await post(path, 'k')
    expect(first).toMatchObject({ status, body: { accountId: caller.accountId, count: 1 } })
    expect(first.headers.has('idempotent-replayed')).toBe(false)
    expect(second).toMatchObject({ status, body: first.body })
    expect(second.headers.get('idempotent-replayed')).toBe('true')
    expect(runs).toBe(1)
  })

  test('a kept answer is not met by the same key of the other mode, whatever that asks for', async () => {
    await post(path, 'k', '{"name":"a"}')
    caller = { ...caller, mode: 'test' }
    const tried = await post(path, 'k', '{"name":"b"}')
    expect([tried.status, tried.headers.has('idempotent-replayed'), runs]).toEqual([status, false, 2])
    expect((await post(path, 'k', '{"name":"b"}')).headers.get('idempotent-replayed')).toBe('true')
    caller = { ...caller, mode: 'live' }
    expect((await post(path, 'k', '{"name":"a"}')).headers.get('idempotent-replayed')).toBe('true')
    expect(runs).toBe(2)
  })

  test('a kept answer cannot be read in the database', async () => {
    await post(path, 'k')
    const [row] = await keptRows()
    expect(row?.response_status).toBe(status)
    expect(row?.response_body?.toString('latin1')).not.toContain('acc')
  })

  test('a kept answer is for the same request only', async () => {
    await post(path, 'k', '{"name":"a"}')
    const others = [
      await post(path, 'k', '{"name":"b"}'),
      await post(path, 'k', '{"name":"a"} '),
      await post(`${path}?x=1`, 'k', '{"name":"a"}'),
      await post(path === '/with-work' ? '/after-work' : '/with-work', 'k', '{"name":"a"}'),
    ]
    for (const { status, body } of others) {
      expect(status).toBe(409)
      expect(body.error).toMatchObject({
        code: 'idempotency_conflict',
        message: expect.stringContaining('another request'),
      })
    }
    expect(runs).toBe(1)
  })

  test('a kept answer is for the same key only, in letter case too', async () => {
    const answers = [await post(path, 'k'), await post(path, 'K'), await post(path, 'k2')]
    expect(answers.map(({ body }) => body.count)).toEqual([1, 2, 3])
  })

  test('a kept answer is for the same account only', async () => {
    await post(path, 'k')
    caller = await newCaller()
    expect((await post(path, 'k')).body).toEqual({ accountId: caller.accountId, count: 2 })
  })

  test('an answer is kept for 24 hours', async () => {
    await post(path, 'k')
    clock.at = start + dayMs - 1
    expect((await post(path, 'k')).body.count).toBe(1)
    clock.at = start + dayMs
    expect((await post(path, 'k')).body.count).toBe(2)
    clock.at = start + 2 * dayMs - 1
    expect((await post(path, 'k')).body.count).toBe(2)
  })

  test('an answer frees its key for another request after 24 hours', async () => {
    await post(path, 'k', '{"name":"a"}')
    clock.at = start + dayMs
    expect((await post(path, 'k', '{"name":"b"}')).body.count).toBe(2)
  })

  test('a kept answer is not that of a failure, which can be tried again', async () => {
    work = async () => {
      throw new DomainError('conflict', 'Not now.')
    }
    expect(await post(path, 'k')).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
    expect(await keptRows()).toEqual([])
    work = async () => runs
    const again = await post(path, 'k', '{"name":"b"}')
    expect(again).toMatchObject({ status, body: { count: 2 } })
    expect(again.headers.has('idempotent-replayed')).toBe(false)
  })

  test('a kept answer is not that of a request refused before its work', async () => {
    expect(await post(path, 'k', '{"name":1}')).toMatchObject({ status: 400 })
    expect(await keptRows()).toEqual([])
  })
})

test('a request whose answer is kept with its work leaves neither work nor answer when it fails', async () => {
  const add = addAudience('Readers')
  work = async (context, body) => {
    await add(context, body)
    throw new Error('out of luck')
  }
  expect((await post('/with-work', 'k')).status).toBe(500)
  expect(await audiences()).toEqual([])
  expect(await keptRows()).toEqual([])
})

test('a request whose answer is kept with its work is done once when it comes twice at once', async () => {
  const { began, finish } = slowWork(addAudience('Readers'))
  const first = post('/with-work', 'k')
  await began
  const second = post('/with-work', 'k')
  await untilSomebodyWaits(db)
  finish()
  expect((await first).headers.has('idempotent-replayed')).toBe(false)
  expect((await second).headers.get('idempotent-replayed')).toBe('true')
  expect((await second).body).toEqual((await first).body)
  expect(await audiences()).toHaveLength(1)
})

test('a request whose answer is kept with its work is done by the second when the first fails meanwhile', async () => {
  const { began, finish } = slowWork(async () => {
    throw new DomainError('conflict', 'Not now.')
  })
  const first = post('/with-work', 'k')
  await began
  const second = post('/with-work', 'k')
  await untilSomebodyWaits(db)
  finish()
  expect((await first).status).toBe(409)
  expect(await second).toMatchObject({ status: 201, body: { count: 2 } })
})

test('a request whose answer is kept with its work is done once of many at once', async () => {
  work = addAudience('Readers')
  const answers = await Promise.all(Array.from({ length: 20 }, () => post('/with-work', 'k')))
  expect(new Set(answers.map(({ status, body }) => `${status} ${body.count}`))).toEqual(new Set(['201 1']))
  expect(answers.filter(({ headers }) => !headers.has('idempotent-replayed'))).toHaveLength(1)
  expect(await audiences()).toHaveLength(1)
})

test('a request whose answer is kept after its work holds no transaction while it works', async () => {
  let isTransaction: boolean | undefined
  work = async ({ handle }) => {
    isTransaction = handle.isTransaction
    return runs
  }
  await post('/after-work', 'k')
  expect(isTransaction).toBe(false)
})

test('a request whose answer is kept after its work has a second one told that it is running', async () => {
  const { began, finish } = slowWork()
  const first = post('/after-work', 'k')
  await began
  const second = await post('/after-work', 'k')
  expect(second).toMatchObject({
    status: 409,
    body: { error: { code: 'idempotency_conflict', message: expect.stringContaining('still running') } },
  })
  finish()
  expect((await first).body.count).toBe(1)
  expect((await post('/after-work', 'k')).headers.get('idempotent-replayed')).toBe('true')
})

test('a request whose answer is kept after its work loses the key after two minutes without an answer, and does not touch it any more', async () => {
  const { began, finish } = slowWork()
  const first = post('/after-work', 'k')
  await began
  clock.at = start + 2 * minuteMs - 1
  expect((await post('/after-work', 'k')).status).toBe(409)
  clock.at = start + 2 * minuteMs
  const later = slowWork()
  const second = post('/after-work', 'k')
  await later.began
  finish()
  expect((await first).status).toBe(200)
  expect((await post('/after-work', 'k')).status).toBe(409)
  later.finish()
  expect((await second).body.count).toBe(2)
  expect((await post('/after-work', 'k')).body.count).toBe(2)
})

test.each([
  ['empty', ''],
  ['longer than 255 characters', 'k'.repeat(256)],
  ['not ASCII', 'k\u00e9y'],
  ['with a tab inside', 'k\ty'],
])('the Idempotency-Key is refused: %s', async (_, key) => {
  const { status, body } = await post('/with-work', key)
  expect(status).toBe(400)
  expect(body.error).toMatchObject({
    code: 'validation_error',
    message: expect.stringContaining('header.idempotency-key: must be 1 to 255 printable ASCII characters'),
  })
  expect(runs).toBe(0)
})

test('the Idempotency-Key is refused when it is given twice', async () => {
  const headers: [string, string][] = [
    ['Idempotency-Key', 'a'],
    ['Idempotency-Key', 'b'],
  ]
  expect(await api.send('POST', '/with-work', { headers, body: '{}' })).toMatchObject({
    status: 400,
    body: { error: { code: 'validation_error' } },
  })
  expect(runs).toBe(0)
})

test.each([
  ['one character', '!'],
  ['255 characters', 'k'.repeat(255)],
  ['spaces inside', 'one two'],
])('the Idempotency-Key is taken: %s', async (_, key) => {
  await post('/with-work', key)
  expect((await post('/with-work', key)).headers.get('idempotent-replayed')).toBe('true')
})

test('the Idempotency-Key is overlooked where it means nothing', async () => {
  const answers = [await post('/plain', 'k'), await post('/plain', 'k'), await post('/plain', 'k'.repeat(300))]
  expect(answers.map(({ status, body }) => [status, body.count])).toEqual([
    [200, 1],
    [200, 2],
    [200, 3],
  ])
  expect(await keptRows()).toEqual([])
})

test('the Idempotency-Key may be missing: then nothing is kept', async () => {
  for (const path of ['/with-work', '/after-work']) await api.send('POST', path, { body: '{}' })
  expect(runs).toBe(2)
  expect(await keptRows()).toEqual([])
})

test('a deprecated operation tells since and until when, with a key, without one and replayed', async () => {
  const told = ({ headers }: Answer) => [headers.get('deprecation'), headers.get('sunset')]
  const dates = [`@${Date.parse(deprecation.deprecatedAt) / 1000}`, new Date(deprecation.sunsetAt).toUTCString()]
  expect(told(await api.send('POST', '/former', { body: '{}' }))).toEqual(dates)
  expect(told(await post('/former', 'former'))).toEqual(dates)
  const replayed = await post('/former', 'former')
  expect([replayed.headers.get('idempotent-replayed'), ...told(replayed)]).toEqual(['true', ...dates])
  expect(told(await post('/with-work', 'other'))).toEqual([null, null])
})

test('keys older than 24 hours are deleted, in batches, and no others', async () => {
  const { accountId } = caller
  const rows = Array.from({ length: 4_100 }, (_, index) => ({
    account_id: accountId,
    key: `old ${index}`,
    fingerprint: Buffer.alloc(32),
    response_status: index % 2 === 0 ? 201 : null,
    response_body: null,
    created_at: new Date(start - index),
  }))
  await db.insertInto('idempotency_keys').values(rows).execute()
  await post('/with-work', 'new')
  clock.at = start + dayMs - 1
  expect(await deleteExpiredIdempotencyKeys({ db, clock })).toBe(4_099)
  expect((await keptRows()).map(({ key }) => key).sort()).toEqual(['new', 'old 0'])
})

test('a use that lost its key neither keeps an answer nor gives the key back', async () => {
  const use = (at: number) => ({
    accountId: caller.accountId,
    key: 'k',
    fingerprint: Buffer.alloc(32),
    at: new Date(at),
  })
  const [lost, holding] = [use(start), use(start + 2 * minuteMs)]
  expect(await claimKey(db, lost)).toBeNull()
  expect(await claimKey(db, holding)).toBeNull()
  await releaseKey(db, lost)
  await keepAnswer(db, lost, { status: 500, body: null })
  expect(await keptRows()).toMatchObject([{ created_at: holding.at, response_status: null }])
})
