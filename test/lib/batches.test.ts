import { expect, test } from 'vitest'
import { startBatches } from '../../server/lib/batches.ts'

/** Batches of at most three; the first `failures` attempts fail, and each batch takes until `gate` resolves. */
function createBatches({ failures = 0, gate = Promise.resolve() }: { failures?: number; gate?: Promise<void> } = {}) {
  const worked: string[] = []
  const errors: unknown[] = []
  const failed = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  let attempts = 0
  const batches = startBatches<string>({
    size: 3,
    full: 1,
    gatheringMs: 0,
    intervalMs: 60_000,
    async work(batch) {
      if (attempts++ < failures) throw new Error('away')
      worked.push(batch.join(''))
      begun.resolve()
      await gate
    },
    onError(error) {
      errors.push(error)
      failed.resolve()
    },
  })
  return { batches, worked, errors, failed: failed.promise, begun: begun.promise }
}

test('what waits is worked on in its order, so many at a time', async () => {
  const { batches, worked } = createBatches()
  for (const item of 'abcde') batches.add(item)
  expect(batches.some((item) => item === 'e')).toBe(true)
  await batches.stop(performance.now())
  expect(worked).toEqual(['abc', 'de'])
  expect(batches.some(() => true)).toBe(false)
})

test('what comes while a batch is worked on waits for the next, also where the batch had room', async () => {
  const gate = Promise.withResolvers<void>()
  const { batches, worked, begun } = createBatches({ gate: gate.promise })
  batches.add('a')
  await begun
  for (const item of 'bc') batches.add(item)
  gate.resolve()
  await batches.stop(performance.now())
  expect(worked).toEqual(['a', 'bc'])
})

test('what failed a moment ago is tried again at once at the end, however little time there is', async () => {
  const { batches, worked, errors, failed } = createBatches({ failures: 1 })
  for (const item of 'abcd') batches.add(item)
  await failed
  await batches.stop(performance.now())
  expect(worked).toEqual(['abc', 'd'])
  expect(errors).toHaveLength(1)
})

test('what goes on failing is left at the deadline', async () => {
  const { batches, worked, failed } = createBatches({ failures: 1_000 })
  batches.add('a')
  await failed
  await batches.stop(performance.now())
  expect(worked).toEqual([])
  expect(batches.some((item) => item === 'a')).toBe(true)
})
