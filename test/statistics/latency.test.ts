import { expect, test } from 'vitest'
import { figures, type latencyClasses } from '../../server/statistics/figures.ts'
import { quantileMs } from '../../server/statistics/latency.ts'
import { noFigures } from '../../server/statistics/to-response.ts'
import { createTestDatabase } from '../support/database.ts'

const withAnswers = (answers: Partial<Record<(typeof latencyClasses)[number]['figure'], number>>) => ({
  ...noFigures(),
  ...answers,
})

test('the latency of a share of answers lies in the class that the share falls into', () => {
  const some = withAnswers({ latency_10: 50, latency_100: 40, latency_more: 10 })
  expect(quantileMs(some, 0.5)).toBe(10)
  expect(quantileMs(some, 0.7)).toBe(75)
  expect(quantileMs(some, 0.9)).toBe(100)
  expect(quantileMs(some, 0.95)).toBe(20_000)
  expect(quantileMs(some, 1)).toBe(30_000)
})

test('one answer alone gives its class, and none gives nothing', () => {
  expect(quantileMs(withAnswers({ latency_250: 1 }), 0.99)).toBe(249)
  expect(quantileMs(noFigures(), 0.5)).toBeNull()
})

test('the tables have a column for each figure, and no other', async () => {
  await using database = await createTestDatabase()
  const tables = await database.db.introspection.getTables()
  for (const name of ['statistics_deltas', 'statistics_hours', 'statistics_days']) {
    const columns = tables.find((table) => table.name === name)?.columns.map((column) => column.name) ?? []
    const keys = ['account_id', 'id', 'mode', 'kind', 'key', 'hour', 'day']
    expect(columns.filter((column) => !keys.includes(column)).toSorted()).toEqual(figures.toSorted())
  }
})
