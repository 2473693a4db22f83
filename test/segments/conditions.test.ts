import { describe, expect, test } from 'vitest'
import { conditions, type SegmentCondition } from '../../contract/segment-conditions.ts'
import { conditionLimits } from '../../contract/segment-operators.ts'

/*
 * The conditions that the contract accepts, before the service looks at properties.
 */

const leaf: SegmentCondition = { type: 'field', field: 'firstName', operator: 'exists', value: true }

function nested(depth: number): SegmentCondition {
  return depth === 1 ? leaf : { type: 'not', condition: nested(depth - 1) }
}

function wide(count: number): SegmentCondition {
  return { type: 'and', conditions: Array<SegmentCondition>(count).fill(leaf) }
}

/** Returns the faults of a value, and whether each breaks a rule that the published schema cannot express. */
function faultsOf(value: unknown): { path: string; message: string; isRule: boolean }[] {
  const { error } = conditions.safeParse(value)
  return (error?.issues ?? []).map((issue) => ({
    path: issue.path.join('.'),
    message: issue.message,
    isRule: issue.code === 'custom' && issue.params?.isRule === true,
  }))
}

describe('a tree', () => {
  test.each([
    ['as deep as it may be', nested(conditionLimits.depth)],
    ['with as many conditions as it may have', wide(conditionLimits.conditions - 1)],
  ])('%s is taken', (_, tree) => {
    expect(faultsOf(tree)).toEqual([])
  })

  test.each([
    ['deeper', nested(conditionLimits.depth + 1)],
    ['much deeper', nested(3_000)],
    ['with more conditions', wide(conditionLimits.conditions)],
    ['with more conditions in several groups', { type: 'or', conditions: [wide(30), wide(30)] }],
  ])('%s breaks a rule', (_, tree) => {
    expect(faultsOf(tree)).toEqual([
      { path: '', message: expect.stringMatching(/at most 50 .* at most 5/), isRule: true },
    ])
  })

  test('a tree of which a list is longer than the schema says does not fit the schema', () => {
    expect(faultsOf(wide(conditionLimits.conditions + 1))).toMatchObject([{ path: 'conditions', isRule: false }])
  })

  test.each([
    [null, ''],
    ['and', ''],
    [[], ''],
    [{}, 'type'],
    [{ type: 'xor', conditions: [leaf] }, 'type'],
    [{ type: 'and' }, 'conditions'],
    [{ type: 'and', conditions: [] }, 'conditions'],
    [{ type: 'not', condition: null }, 'condition'],
    [{ type: 'and', conditions: [leaf, { ...leaf, value: null }] }, 'conditions.1.value'],
    [{ ...leaf, value: '' }, 'value'],
    [{ ...leaf, value: 'a\u0000' }, 'value'],
    [{ ...leaf, value: 'x'.repeat(501) }, 'value'],
    [{ ...leaf, value: Number.POSITIVE_INFINITY }, 'value'],
    [{ ...leaf, operator: 'like' }, 'operator'],
    [{ ...leaf, field: 'password' }, 'field'],
    [{ type: 'property', property: '__proto__', operator: 'is', value: 'x' }, 'property'],
    [{ type: 'engagement', event: 'bounced' }, 'event'],
    [{ type: 'engagement', event: 'opened', inLastDays: 0 }, 'inLastDays'],
    [{ type: 'engagement', event: 'opened', campaignId: 'cmp_1' }, 'campaignId'],
    [{ type: 'topic', topicId: 'cmp_01jqz4x7m8e5v9t2k6r3w0y1ab', subscribed: true }, 'topicId'],
    [{ type: 'topic', topicId: 'top_01jqz4x7m8e5v9t2k6r3w0y1ab' }, 'subscribed'],
  ])('%j does not fit the schema', (tree, path) => {
    const faults = faultsOf(tree)
    expect(faults[0]).toMatchObject({ path, isRule: false })
  })
})
