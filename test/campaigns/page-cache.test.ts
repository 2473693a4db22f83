import { expect, test } from 'vitest'
import { createPageCache } from '../../server/campaigns/page-cache.ts'

function createCache({ maxSizeOfOwner = 10 } = {}) {
  let nowMs = 0
  const made: string[] = []
  const cache = createPageCache<string>({
    sizeOf: (page) => page.length,
    isKept: (page) => page !== 'busy',
    maxSize: 10,
    maxSizeOfOwner,
    keptMs: 1_000,
    nowMs: () => nowMs,
  })
  return {
    made,
    wait: (ms: number) => {
      nowMs += ms
    },
    get: (key: string, page = key) =>
      cache.get({ owner: key.slice(0, 1), id: key }, async () => {
        made.push(key)
        return page
      }),
    cache,
  }
}

test('a page is made once, for concurrent readers too, and again after its time', async () => {
  const { get, made, wait } = createCache()
  expect(await Promise.all([get('a'), get('a')])).toEqual(['a', 'a'])
  wait(999)
  await get('a')
  expect(made).toEqual(['a'])
  wait(1)
  await get('a')
  expect(made).toEqual(['a', 'a'])
})

test('the page that was not read for longest gives way, and one that is too large is not kept', async () => {
  const { get, made } = createCache()
  for (const key of ['aaaa', 'bbbb', 'aaaa', 'cccc', 'aaaa', 'bbbb']) await get(key)
  expect(made).toEqual(['aaaa', 'bbbb', 'cccc', 'bbbb'])
  await get('x', 'x'.repeat(11))
  await get('x', 'x'.repeat(11))
  expect(made.slice(4)).toEqual(['x', 'x'])
})

test('pages of one owner do not drive out those of others', async () => {
  const { get, made } = createCache({ maxSizeOfOwner: 4 })
  for (const key of ['b1', 'a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'a4', 'a5']) await get(key)
  expect(made).toEqual(['b1', 'a1', 'a2', 'a3', 'a4', 'a5'])
  await get('a1')
  expect(made).toHaveLength(7)
  await get('c', 'ccccc')
  await get('c', 'ccccc')
  expect(made.slice(7)).toEqual(['c', 'c'])
})

test('a page that may not be kept is made again', async () => {
  const { get, made } = createCache()
  expect(await get('a', 'busy')).toBe('busy')
  expect(await get('a')).toBe('a')
  expect(made).toEqual(['a', 'a'])
})

test('a page that fails is made again', async () => {
  const { get, cache, made } = createCache()
  await expect(cache.get({ owner: 'a', id: 'a' }, () => Promise.reject(new Error('lost')))).rejects.toThrow('lost')
  expect(await get('a')).toBe('a')
  expect(made).toEqual(['a'])
})
