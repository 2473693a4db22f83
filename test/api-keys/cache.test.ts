import { beforeEach, describe, expect, test } from 'vitest'
import { createKeyCache, type KeyCache } from '../../server/api-keys/cache.ts'
import type { FoundKey } from '../../server/api-keys/service.ts'

const clock = { at: 0, now: () => new Date(clock.at) }
let cache: KeyCache

beforeEach(() => {
  clock.at = Date.parse('2026-01-01T00:00:00Z')
  cache = createKeyCache({ clock, maxKeys: 3 })
})

function key(keyId: string, { isRevoked = false } = {}): FoundKey {
  return {
    keyId,
    actor: { type: 'key', id: keyId, name: 'A key' },
    accountId: 'acc',
    plan: 'free',
    mode: 'live',
    permissions: ['full_access'],
    limits: { expiresAt: null, allowedAddresses: [] },
    allowedRanges: [],
    isRevoked,
  }
}

/** A read that ends when told. */
function slowRead() {
  const { promise, resolve } = Promise.withResolvers<FoundKey | null>()
  let count = 0
  const read = () => {
    count++
    return promise
  }
  return { read, resolve, count: () => count }
}

test('a key is known for two seconds after it was read', async () => {
  await cache.read('secret', async () => key('key_1'))
  clock.at += 1_999
  expect(cache.get('secret')).toMatchObject({ keyId: 'key_1' })
  expect(cache.get('other')).toBeUndefined()
  clock.at += 1
  expect(cache.get('secret')).toBeUndefined()
})

test('the two seconds begin before the read, not after it', async () => {
  const { read, resolve } = slowRead()
  const reading = cache.read('secret', read)
  clock.at += 2_000
  resolve(key('key_1'))
  expect(await reading).toMatchObject({ keyId: 'key_1' })
  expect(cache.get('secret')).toBeUndefined()
})

test('a clock set back does not lengthen them', async () => {
  await cache.read('secret', async () => key('key_1'))
  clock.at -= 1
  expect(cache.get('secret')).toBeUndefined()
})

test.each([
  ['unknown', null],
  ['revoked', key('key_1', { isRevoked: true })],
])('a key that is %s is answered but not kept', async (_, found) => {
  expect(await cache.read('secret', async () => found)).toEqual(found)
  expect(cache.get('secret')).toBeUndefined()
})

test('a read that fails is told and tried again', async () => {
  await expect(cache.read('secret', () => Promise.reject(new Error('no database')))).rejects.toThrow('no database')
  expect(await cache.read('secret', async () => key('key_1'))).toMatchObject({ keyId: 'key_1' })
})

test('beyond its bound the key read longest ago goes', async () => {
  for (const id of ['a', 'b', 'c']) await cache.read(id, async () => key(id))
  await cache.read('a', async () => key('a'))
  await cache.read('d', async () => key('d'))
  expect(['a', 'b', 'c', 'd'].filter((id) => cache.get(id) !== undefined)).toEqual(['a', 'c', 'd'])
})

test('requests at once with one secret share one read', async () => {
  const { read, resolve, count } = slowRead()
  const both = [cache.read('secret', read), cache.read('secret', read)]
  resolve(key('key_1'))
  expect(await Promise.all(both)).toEqual([key('key_1'), key('key_1')])
  expect(count()).toBe(1)
})

test('requests at once with other secrets do not', async () => {
  const results = [cache.read('a', async () => key('a')), cache.read('b', async () => key('b'))]
  expect((await Promise.all(results)).map((found) => found?.keyId)).toEqual(['a', 'b'])
})

describe.each([
  ['a notification of the key', () => cache.tellNotified('key_1')],
  ['an empty notification', () => cache.tellNotified('')],
])('%s', (_, forget) => {
  test('a notification makes the cache forget the key', async () => {
    await cache.read('secret', async () => key('key_1'))
    forget()
    expect(cache.get('secret')).toBeUndefined()
  })

  test('a notification keeps a read that began before it from being kept or shared', async () => {
    const before = slowRead()
    const early = cache.read('secret', before.read)
    forget()
    const after = slowRead()
    const late = cache.read('secret', after.read)
    after.resolve(key('key_1', { isRevoked: true }))
    before.resolve(key('key_1'))
    expect(await early).toMatchObject({ isRevoked: false })
    expect(await late).toMatchObject({ isRevoked: true })
    expect(cache.get('secret')).toBeUndefined()
  })
})

test('invalidating a key leaves the others', async () => {
  await cache.read('a', async () => key('key_a'))
  await cache.read('b', async () => key('key_b'))
  cache.tellNotified('key_a')
  expect(cache.get('a')).toBeUndefined()
  expect(cache.get('b')).toMatchObject({ keyId: 'key_b' })
})
