import { expect, test } from 'vitest'
import { chartStepsOf } from '../../server/dashboard/screens/campaigns/chart-steps.ts'

const none = { delivered: 0, opened: 0, clicked: 0, bounced: 0, unsubscribed: 0 }
const at = (start: string, counts = {}) => ({ start, ...none, ...counts })
const delivered = (rows: Record<string, string | number>[]) => rows.map((row) => row.Delivered)

test('a campaign of three days is shown by hour, with the hours in between and an empty one at both ends', () => {
  const { step, rows } = chartStepsOf({
    hours: [
      at('2026-03-01T09:00:00Z', { delivered: 5 }),
      at('2026-03-01T11:00:00Z', { delivered: 1, unsubscribed: 2 }),
    ],
    days: [at('2026-03-01T00:00:00Z', { delivered: 6 }), at('2026-03-03T00:00:00Z')],
  })
  expect(step).toBe('hour')
  expect(delivered(rows)).toEqual([0, 5, 0, 1, 0])
  expect(rows[3]).toMatchObject({ start: Date.parse('2026-03-01T11:00:00Z'), Unsubscribed: 2 })
})

test('a longer one is shown by day, and so is one whose hours are no longer kept', () => {
  const days = [at('2026-03-01T00:00:00Z', { delivered: 6 }), at('2026-03-04T00:00:00Z', { delivered: 1 })]
  const hours = [at('2026-03-04T11:00:00Z', { delivered: 1 })]
  for (const steps of [
    { hours, days },
    { hours: [], days },
  ]) {
    const { step, rows } = chartStepsOf(steps)
    expect(step).toBe('day')
    expect(delivered(rows)).toEqual([0, 6, 0, 0, 1, 0])
  }
  expect(chartStepsOf({ hours: [], days: days.slice(0, 1) })).toMatchObject({ step: 'day' })
  expect(chartStepsOf({ hours: [], days: [] }).rows).toEqual([])
})
