import { expect, test } from 'vitest'
import { createPageCache } from '../../server/campaigns/page-cache.ts'

function createCache() {
  let nowMs = 0
  const made: string[] = []
  const cache = createPageCache<string>({
    sizeOf: (page) => page.length,
    maxSize: 10,
    keptMs: 1_000,
    nowMs: () => nowMs,
  })
  return {
    made,
    wait: (ms: number) => {
      nowMs += ms
    },
    get: (key: string, page = key) =>
      cache.get(key, async () => {
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

test('a page that fails is made again', async () => {
  const { get, cache, made } = createCache()
  await expect(cache.get('a', () => Promise.reject(new Error('lost')))).rejects.toThrow('lost')
  expect(await get('a')).toBe('a')
  expect(made).toEqual(['a'])
})
