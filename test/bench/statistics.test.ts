import { expect, test } from 'vitest'
import { isMet, lateGrowth, median, pairedRatio, quantile, ratio } from '../../scripts/bench/statistics.ts'

test('a median is the middle, or half-way between the two in the middle, whatever the order', () => {
  expect(median([9, 1, 5])).toBe(5)
  expect(median([4, 1, 3, 2])).toBe(2.5)
})

test('a quantile lies on the line between the values beside it', () => {
  const values = Array.from({ length: 101 }, (_, index) => 100 - index)
  expect(quantile(values, 0.99)).toBe(99)
  expect(quantile([0, 10], 0.25)).toBe(2.5)
  expect(quantile([7], 0.99)).toBe(7)
})

test('of nothing there is no quantile', () => {
  expect(quantile([], 0.5)).toBeNaN()
})

test('a ratio is that of the medians: one bad round does not decide', () => {
  expect(ratio([40, 1, 44], [100, 110, 9_000])).toBeCloseTo(40 / 110)
})

test('a ratio of pairs is not moved by what befalls both halves of some', () => {
  expect(pairedRatio([90, 45, 9, 180], [100, 50, 10, 200])).toBeCloseTo(0.9)
  expect(pairedRatio([90, 90, 10], [100, 100, 100])).toBeCloseTo(0.9)
})

test('a goal is met at its bound', () => {
  expect(isMet(0.4, { atLeast: 0.4 })).toBe(true)
  expect(isMet(0.399, { atLeast: 0.4 })).toBe(false)
  expect(isMet(50, { atMost: 50 })).toBe(true)
  expect(isMet(50.1, { atMost: 50 })).toBe(false)
})

test('what could not be measured meets no goal', () => {
  expect(isMet(Number.NaN, { atLeast: 0 })).toBe(false)
  expect(isMet(Number.NaN, { atMost: 1 })).toBe(false)
})

test('a series has levelled off when its last third is no greater than the one before, however it began', () => {
  expect(lateGrowth([1, 5, 10, 9, 9, 10])).toBe(1)
  expect(lateGrowth([1, 2, 4, 6, 8, 12])).toBe(2)
  expect(lateGrowth([0, 0, 0])).toBe(1)
  expect(lateGrowth([1, 2])).toBeNaN()
})
