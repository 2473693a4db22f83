import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createDeadlines } from '../../../server/webhook-delivery/scheduling/deadline-heap.ts'

const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('add' as const), at: fc.integer({ min: 0, max: 20 }) }),
    fc.record({ kind: fc.constant('take' as const), now: fc.integer({ min: 0, max: 20 }) }),
  ),
  { maxLength: 200 },
)

test('items come out by time, and those of one time in the order in which they were added', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const deadlines = createDeadlines<number>()
      let sorted: { item: number; at: number }[] = []
      for (const [item, step] of all.entries()) {
        if (step.kind === 'add') {
          deadlines.add(item, step.at)
          // A stable sort.
          sorted = [...sorted, { item, at: step.at }].toSorted((a, b) => a.at - b.at)
        } else {
          const first = sorted[0]
          const due = first !== undefined && first.at <= step.now ? first : undefined
          if (due !== undefined) sorted = sorted.slice(1)
          expect(deadlines.takeDue(step.now)).toBe(due?.item)
        }
        expect(deadlines.size).toBe(sorted.length)
        expect(deadlines.earliest()).toBe(sorted[0]?.at)
      }
    }),
  )
})
