import { expect, test } from 'vitest'
import { createCoalescing } from '../../server/lib/request-coalescing.ts'

class OfOne extends Error {}

/** Work that ends when it is told to, with what was worked on at once. */
function createWork({ limit = 10, patienceMs = 60_000 } = {}) {
  const waiters: { count: number; reached: () => void }[] = []
  const begun: { items: readonly string[]; ending: PromiseWithResolvers<void> }[] = []
  const coalescing = createCoalescing<string, string>({
    limit,
    patienceMs,
    async work(items) {
      const ending = Promise.withResolvers<void>()
      begun.push({ items, ending })
      for (const { count, reached } of waiters) if (begun.length >= count) reached()
      await ending.promise
      return items.map((item) => item.toUpperCase())
    },
    isOfOne: (error) => error instanceof OfOne,
  })
  /** Resolves when work has begun so many times. */
  const until = async (count: number) => {
    if (begun.length < count) await new Promise<void>((reached) => waiters.push({ count, reached }))
  }
  return { together: coalescing, begun, until, all: () => begun.map(({ items }) => items.join('')) }
}

/** Until all that could follow has followed. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('what comes alone is worked on at once', async () => {
  const { together: coalescing, all, begun } = createWork()
  const one = coalescing.add('g', 'a')
  expect(all()).toEqual(['a'])
  begun[0]?.ending.resolve()
  expect(await one).toBe('A')
  const next = coalescing.add('g', 'b')
  await turn()
  expect(all()).toEqual(['a', 'b'])
  begun[1]?.ending.resolve()
  expect(await next).toBe('B')
})

test('what comes meanwhile is worked on together, in its order, as many at once as may be', async () => {
  const { together: coalescing, all, begun } = createWork({ limit: 3 })
  const asked = ['a', 'b', 'c', 'd', 'e'].map((item) => coalescing.add('g', item))
  expect(all()).toEqual(['a'])
  begun[0]?.ending.resolve()
  await turn()
  expect(all()).toEqual(['a', 'bcd'])
  begun[1]?.ending.resolve()
  await turn()
  expect(all()).toEqual(['a', 'bcd', 'e'])
  begun[2]?.ending.resolve()
  expect(await Promise.all(asked)).toEqual(['A', 'B', 'C', 'D', 'E'])
})

test('groups do not wait for each other, nor share', async () => {
  const { together: coalescing, all, begun } = createWork()
  const asked = [coalescing.add('g', 'a'), coalescing.add('h', 'b'), coalescing.add('h', 'c'), coalescing.add('g', 'd')]
  expect(all()).toEqual(['a', 'b'])
  begun[1]?.ending.resolve()
  await turn()
  expect(all()).toEqual(['a', 'b', 'c'])
  begun[0]?.ending.resolve()
  await turn()
  expect(all()).toEqual(['a', 'b', 'c', 'd'])
  for (const { ending } of begun) ending.resolve()
  expect(await Promise.all(asked)).toEqual(['A', 'B', 'C', 'D'])
})

test('an error is of all that was worked on, and of nothing that came after', async () => {
  const { together: coalescing, all, begun } = createWork()
  const asked = Promise.allSettled(['a', 'b', 'c'].map((item) => coalescing.add('g', item)))
  begun[0]?.ending.resolve()
  await turn()
  const late = coalescing.add('g', 'd')
  begun[1]?.ending.reject(new Error('away'))
  expect(await asked).toMatchObject([{ value: 'A' }, { reason: { message: 'away' } }, { reason: { message: 'away' } }])
  await turn()
  expect(all()).toEqual(['a', 'bc', 'd'])
  begun[2]?.ending.resolve()
  expect(await late).toBe('D')
})

test('an error that may be due to one item fails that one alone', async () => {
  const { together: coalescing, all, begun } = createWork()
  const asked = Promise.allSettled(['a', 'b', 'c'].map((item) => coalescing.add('g', item)))
  begun[0]?.ending.resolve()
  await turn()
  begun[1]?.ending.reject(new OfOne('one of them'))
  await turn()
  begun[2]?.ending.reject(new OfOne('b itself'))
  await turn()
  begun[3]?.ending.resolve()
  expect(await asked).toMatchObject([{ value: 'A' }, { reason: { message: 'b itself' } }, { value: 'C' }])
  expect(all()).toEqual(['a', 'bc', 'b', 'c'])
})

test('what comes does not wait for work that takes long, however much of it does', async () => {
  const { together: coalescing, begun, all, until } = createWork({ patienceMs: 1 })
  const first = coalescing.add('g', 'a')
  const second = coalescing.add('g', 'b')
  await until(2)
  const third = coalescing.add('g', 'c')
  const fourth = coalescing.add('g', 'd')
  await until(3)
  expect(all()).toEqual(['a', 'b', 'cd'])
  begun[1]?.ending.resolve()
  begun[2]?.ending.resolve()
  expect(await Promise.all([second, third, fourth])).toEqual(['B', 'C', 'D'])
  const next = coalescing.add('g', 'e')
  await until(4)
  begun[3]?.ending.resolve()
  expect(await next).toBe('E')
  begun[0]?.ending.resolve()
  expect(await first).toBe('A')
})
