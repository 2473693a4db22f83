import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { faultsOfAbTest, type VariantFigures, winnerOf } from '../../server/campaigns/ab-test.ts'

const of = (sent: number, opened: number, clicked = 0): VariantFigures => ({ sent, opened, clicked })

test.each([
  ['has the largest share, not the most people', [of(100, 20), of(10, 3)], 1],
  ['is the first of those with the same share', [of(3, 1), of(6, 2), of(9, 3)], 0],
  ['is the first where nobody opened', [of(5, 0), of(7, 0)], 0],
  ['is the first where nothing was sent', [of(0, 0), of(0, 0)], 0],
  ['is the first that was sent to anybody where nobody opened', [of(0, 0), of(7, 0), of(9, 0)], 1],
  ['is one that was opened, before one that was not sent', [of(0, 0), of(9, 1)], 1],
])('the winner: %s', (_, figures, winner) => {
  expect(winnerOf(figures, 'opens')).toBe(winner)
})

test('the winner by clicks is another one than by opens', () => {
  const figures = [of(10, 9, 1), of(10, 1, 2)]
  expect(winnerOf(figures, 'opens')).toBe(0)
  expect(winnerOf(figures, 'clicks')).toBe(1)
})

test('the winner is the first of those that no other one beats, as exact fractions say', () => {
  const figure = fc.integer({ min: 0, max: 1_000_000 }).chain((sent) =>
    fc.record({
      sent: fc.constant(sent),
      opened: fc.integer({ min: 0, max: sent }),
      clicked: fc.constant(0),
    }),
  )
  const shareOf = (one: VariantFigures, other: VariantFigures) => BigInt(one.opened) * BigInt(Math.max(1, other.sent))
  const isMore = (one: VariantFigures, other: VariantFigures) => {
    const [its, others] = [shareOf(one, other), shareOf(other, one)]
    return its === others ? one.sent > 0 && other.sent === 0 : its > others
  }
  fc.assert(
    fc.property(fc.array(figure, { minLength: 2, maxLength: 5 }), (figures) => {
      const first = figures.findIndex((one) => !figures.some((other) => isMore(other, one)))
      expect(winnerOf(figures, 'opens')).toBe(first)
    }),
  )
})

describe('what is wrong with a test', () => {
  const good = {
    ab_test: {
      share: 20,
      winnerBy: 'opens' as const,
      hours: 4,
      variants: ['A', 'B', 'C'].map((name) => ({ name, subject: null })),
    },
    track_opens: true,
    track_clicks: false,
  }

  test('nothing, or the field that it stands in', () => {
    expect(faultsOfAbTest(good)).toEqual([])
    expect(faultsOfAbTest({ ...good, ab_test: null, track_opens: false })).toEqual([])
    const pathsOf = (fields: Parameters<typeof faultsOfAbTest>[0]) => faultsOfAbTest(fields).map(({ path }) => path)
    expect(pathsOf({ ...good, track_opens: false })).toEqual(['body.abTest.winnerBy'])
    const byClicks = { ...good.ab_test, winnerBy: 'clicks' as const }
    expect(pathsOf({ ...good, ab_test: byClicks })).toEqual(['body.abTest.winnerBy'])
    const byHand = { ...good.ab_test, winnerBy: 'manual' as const }
    expect(pathsOf({ ...good, ab_test: byHand })).toEqual(['body.abTest.hours'])
    const named = (...names: string[]) => ({
      ...good,
      ab_test: { ...good.ab_test, variants: names.map((name) => ({ name, subject: null })) },
    })
    expect(pathsOf(named('A', 'B', 'A', 'B'))).toEqual(['body.abTest.variants[2].name', 'body.abTest.variants[3].name'])
  })
})
