import { expect, test } from 'vitest'
import { firstUnsafeId } from '../../server/events/horizon.ts'
import { firstIdAt } from '../../server/ids.ts'

const at = new Date('2026-03-01T09:30:10.000Z')
const quiet = { oldestAgeMs: null, nextTransactionId: '700' }

test('with nothing in flight and nothing written meanwhile, everything may be shown', () => {
  expect(firstUnsafeId({ ...quiet, at }, quiet)).toBeNull()
})

test('a transaction in flight holds back what was made after it began, and a second before', () => {
  const bound = firstUnsafeId({ oldestAgeMs: 4_000, nextTransactionId: '700', at }, quiet)
  expect(bound).toBe(firstIdAt('event', new Date('2026-03-01T09:30:05.000Z')))
})

test('one that began, or began and ended, while the events were read holds back the last second', () => {
  const bound = firstIdAt('event', new Date('2026-03-01T09:30:09.000Z'))
  expect(firstUnsafeId({ ...quiet, at }, { ...quiet, oldestAgeMs: 0 })).toBe(bound)
  expect(firstUnsafeId({ ...quiet, at }, { ...quiet, nextTransactionId: '701' })).toBe(bound)
})
