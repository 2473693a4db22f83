import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type SegmentCondition, conditions as schema } from '../../contract/segment-conditions.ts'
import type { Comparable } from '../../contract/segment-operators.ts'
import {
  faultsAt,
  type Group,
  groupOf,
  isGroup,
  newGroup,
  newLeaf,
  replaced,
  written,
} from '../../server/dashboard/screens/segments/condition-tree.ts'
import { holdsFor, type SegmentPerson } from '../support/segment-people.ts'

const types = new Map<string, Comparable>([
  ['plan', 'string'],
  ['seats', 'number'],
  ['vip', 'boolean'],
  ['born', 'date'],
])

const leaf = fc.constantFrom<SegmentCondition>(
  { type: 'field', field: 'firstName', operator: 'is', value: 'Ada' },
  { type: 'field', field: 'status', operator: 'is_not', value: 'active' },
  { type: 'property', property: 'plan', operator: 'exists', value: false },
)

const { tree } = fc.letrec<{ tree: SegmentCondition }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.record({
      type: fc.constantFrom('and' as const, 'or' as const),
      conditions: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ type: fc.constant('not' as const), condition: tie('tree') }),
  ),
}))

/** Everybody whom the conditions of `leaf` tell apart. */
const people = ['Ada', 'Grace'].flatMap((firstName) =>
  (['active', 'unsubscribed'] as const).flatMap((status) =>
    [{}, { plan: 'pro' }].map(
      (properties): SegmentPerson => ({
        email: 'ada@example.com',
        firstName,
        lastName: null,
        subscriberStatus: 'active',
        status,
        createdAt: new Date(0),
        properties,
        emails: [],
      }),
    ),
  ),
)

function chosen(condition: SegmentCondition): boolean[] {
  const context = { at: new Date(0), types: types as ReadonlyMap<string, 'string'> }
  return people.map((person) => holdsFor(condition, person, context))
}

function sizeOf(condition: SegmentCondition): { nodes: number; depth: number } {
  const group = 'conditions' in condition ? condition.conditions : []
  const inner = condition.type === 'not' ? [condition.condition] : group
  const sizes = inner.map(sizeOf)
  return {
    nodes: 1 + sizes.reduce((sum, { nodes }) => sum + nodes, 0),
    depth: 1 + Math.max(0, ...sizes.map(({ depth }) => depth)),
  }
}

test('the conditions of a segment in the editor choose the same people when they are saved unchanged, with no more groups than before', () => {
  fc.assert(
    fc.property(tree, (condition) => {
      const { conditions } = written(groupOf(condition), types)
      expect(chosen(conditions)).toEqual(chosen(condition))
      const [before, after] = [sizeOf(condition), sizeOf(conditions)]
      expect(after.nodes).toBeLessThanOrEqual(before.nodes)
      expect(after.depth).toBeLessThanOrEqual(before.depth)
    }),
  )
})

test.each<SegmentCondition>([
  { type: 'property', property: 'seats', operator: 'at_least', value: 0.5 },
  { type: 'property', property: 'vip', operator: 'is', value: false },
  { type: 'property', property: 'born', operator: 'before', value: '2000-02-29' },
  { type: 'property', property: 'born', operator: 'in_last_days', value: 7 },
  { type: 'property', property: 'plan', operator: 'exists', value: true },
  { type: 'property', property: 'gone', operator: 'is', value: 'as it was' },
  { type: 'field', field: 'createdAt', operator: 'after', value: '2026-03-01T09:30:12.345Z' },
  { type: 'field', field: 'createdAt', operator: 'before', value: '2026-03-01T09:30:00.000Z' },
  { type: 'engagement', event: 'clicked', inLastDays: 30, campaignId: 'cmp_01jqz4x7m8e5v9t2k6r3w0y1ab' },
  { type: 'engagement', event: 'opened' },
  { type: 'topic', topicId: 'top_01jqz4x7m8e5v9t2k6r3w0y1ab', subscribed: true },
  { type: 'topic', topicId: 'top_01jqz4x7m8e5v9t2k6r3w0y1ab', subscribed: false },
])('the conditions of a segment in the editor keep each value and its type: %j', (condition) => {
  const { conditions, missing } = written(groupOf(condition), types)
  expect(conditions).toEqual(condition)
  expect([...missing]).toEqual([])
})

test('conditions that begin in the editor are complete and taken by the API', () => {
  const { conditions, missing } = written(newGroup([newLeaf()]), types)
  expect([...missing]).toEqual([])
  expect(schema.safeParse(conditions).success).toBe(true)
})

test('the conditions of a segment in the editor say what is missing: a value, a number, the conditions of a group', () => {
  const empty = { ...newLeaf(), subject: 'property.plan', value: ' ' }
  const none = { ...newLeaf(), subject: 'property.seats', value: 'many' }
  const group = newGroup([], 'any')
  const { missing } = written(newGroup([empty, none, group]), types)
  expect([...missing]).toEqual([
    [empty.key, 'Enter a value.'],
    [none.key, 'Enter a number.'],
    [group.key, 'Add a condition, or remove the group.'],
  ])
})

test('the conditions of a segment in the editor take each fault of the API to the condition and the part that it belongs to', () => {
  const [first, second, third] = [newLeaf(), newLeaf(), newLeaf()]
  const inner = newGroup([second, third], 'none')
  const { places } = written(newGroup([first, inner]), types)
  const { faults, others } = faultsAt(places, [
    { path: 'body.conditions', message: 'too many' },
    { path: 'body.conditions.conditions[0].property', message: 'no such property' },
    { path: 'body.conditions.conditions[1].condition.conditions[0].value', message: 'no number' },
    { path: 'body.conditions.conditions[1].condition.conditions[1].operator', message: 'no such operator' },
    { path: 'body.audienceId', message: 'of no field' },
  ])
  expect(faults.get(first.key)).toEqual({ subject: 'no such property' })
  expect(faults.get(second.key)).toEqual({ value: 'no number' })
  expect(faults.get(third.key)).toEqual({ operator: 'no such operator' })
  expect([...faults.values()]).toContainEqual({ whole: 'too many' })
  expect(others).toEqual(['of no field'])
})

test('the conditions of a segment in the editor are changed and taken away where they stand, however deep', () => {
  const [first, second] = [newLeaf(), newLeaf()]
  const inner = newGroup([second])
  const root = newGroup([first, inner])
  const changed = replaced(root, second.key, (node) => ({ ...node, value: 'unsubscribed' }))
  expect((changed.children[1] as Group).children).toMatchObject([{ key: second.key, value: 'unsubscribed' }])
  const without = replaced(changed, inner.key, () => null)
  expect(without.children).toEqual([first])
  expect(replaced(without, root.key, (node) => (isGroup(node) ? { ...node, kind: 'any' } : node)).kind).toBe('any')
})
