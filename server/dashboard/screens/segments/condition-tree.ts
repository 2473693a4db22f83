import type { Comparison, EngagementCondition, SegmentCondition } from '../../../../contract/segment-conditions.ts'
import {
  type Comparable,
  type ContactField,
  contactFields,
  type Engagement,
  engagements,
  type Operator,
} from '../../../../contract/segment-operators.ts'
import { exactLocalTime } from '../../components/local-time.ts'

/*
 * The conditions of a segment as the editor holds them: values are texts that are being typed, and "not" belongs to a
 * group. What is typed becomes conditions of the API, and faults of the API find back to what was typed.
 */

/** How the conditions of a group go together. `none` is not any, `not_all` is not all. */
export type GroupKind = 'all' | 'any' | 'none' | 'not_all'

export type Group = { key: string; kind: GroupKind; children: Node[] }

/** A condition that compares. */
export type Leaf = {
  key: string
  /** The subject of the comparison, such as `field.email`, `property.plan`, `engagement.opened` or `topic.top_01…`. */
  subject: string
  /** An operator, `exists` or `exists_not`; of engagement `ever` or `in_last_days`; of a topic `gets` or `gets_not`. */
  operator: Operator | 'exists_not' | 'ever' | 'gets' | 'gets_not'
  /** As it is typed. */
  value: string
  /** Of engagement: the campaign whose emails count. Empty: any. */
  campaignId: string
}

export type Node = Group | Leaf

export function isGroup(node: Node): node is Group {
  return 'children' in node
}

let lastKey = 0

/** Returns a key that no other node has. */
function newKey(): string {
  lastKey += 1
  return String(lastKey)
}

/** Returns a condition to begin with. */
export function newLeaf(): Leaf {
  return { key: newKey(), subject: 'field.status', operator: 'is', value: 'active', campaignId: '' }
}

export function newGroup(children: Node[], kind: GroupKind = 'all'): Group {
  return { key: newKey(), kind, children }
}

/** Returns the group that the editor shows for conditions of the API. */
export function groupOf(condition: SegmentCondition): Group {
  const node = nodeOf(condition)
  return isGroup(node) ? node : newGroup([node])
}

const negated: Readonly<Record<GroupKind, GroupKind>> = { all: 'not_all', not_all: 'all', any: 'none', none: 'any' }

function nodeOf(condition: SegmentCondition): Node {
  switch (condition.type) {
    case 'and':
    case 'or':
      return newGroup(condition.conditions.map(nodeOf), condition.type === 'and' ? 'all' : 'any')
    case 'not': {
      const inner = nodeOf(condition.condition)
      return isGroup(inner) ? { ...inner, kind: negated[inner.kind] } : newGroup([inner], 'none')
    }
    case 'engagement':
      return {
        key: newKey(),
        subject: `engagement.${condition.event}`,
        operator: condition.inLastDays === undefined ? 'ever' : 'in_last_days',
        value: String(condition.inLastDays ?? ''),
        campaignId: condition.campaignId ?? '',
      }
    case 'topic':
      return {
        key: newKey(),
        subject: `topic.${condition.topicId}`,
        operator: condition.subscribed ? 'gets' : 'gets_not',
        value: '',
        campaignId: '',
      }
    default:
      return leafOf(condition)
  }
}

function leafOf(comparison: Comparison): Leaf {
  const { operator, value } = comparison
  const isAbsent = operator === 'exists' && value === false
  return {
    key: newKey(),
    subject: comparison.type === 'field' ? `field.${comparison.field}` : `property.${comparison.property}`,
    operator: isAbsent ? 'exists_not' : operator,
    value: operator === 'exists' ? '' : typedOf(comparison),
    campaignId: '',
  }
}

/** Times are typed in the reader's zone. */
function typedOf(comparison: Comparison): string {
  const { value, operator } = comparison
  const isTime = comparison.type === 'field' && contactFields[comparison.field] === 'time'
  if (!isTime || operator === 'in_last_days') return String(value)
  const at = new Date(String(value))
  if (Number.isNaN(at.getTime())) return String(value)
  return exactLocalTime(at)
}

/** The type of each declared property, by key. */
export type Types = ReadonlyMap<string, Comparable>

/** Returns the type of what a condition compares. Undefined: a property that is not declared, engagement or a topic. */
export function typeOf({ subject }: Leaf, types: Types): Comparable | undefined {
  const [kind, name = ''] = partsOf(subject)
  if (kind === 'field') return contactFields[name as ContactField]
  return kind === 'property' ? types.get(name) : undefined
}

/** Splits a subject into its kind and its name. */
export function partsOf(subject: string): [kind: string, name: string] {
  const at = subject.indexOf('.')
  return [subject.slice(0, at), subject.slice(at + 1)]
}

export function isEngagement({ subject }: Leaf): boolean {
  return partsOf(subject)[0] === 'engagement'
}

export function isTopic({ subject }: Leaf): boolean {
  return partsOf(subject)[0] === 'topic'
}

/** Operators without a value. */
const complete: readonly Leaf['operator'][] = ['exists', 'exists_not', 'ever', 'gets', 'gets_not']

/** Returns true when a condition needs a value beside its operator. */
export function needsValue({ operator }: Pick<Leaf, 'operator'>): boolean {
  return !complete.includes(operator)
}

/** Where each condition stands in the body of a request: the key of its node, by path. */
export type Places = ReadonlyMap<string, string>

/** The conditions of the editor, in the form that the API takes. */
export type Written = {
  conditions: SegmentCondition
  places: Places
  /** Keys of the conditions and groups that are not complete, with what is missing. */
  missing: ReadonlyMap<string, string>
}

/** Returns the conditions that are typed. */
export function written(root: Group, types: Types): Written {
  const places = new Map<string, string>()
  const missing = new Map<string, string>()

  function write(node: Node, path: string): SegmentCondition {
    places.set(path, node.key)
    if (!isGroup(node)) {
      const fault = missingOf(node, types)
      if (fault !== null) missing.set(node.key, fault)
      return conditionOf(node, types)
    }
    if (node.children.length === 0) missing.set(node.key, 'Add a condition, or remove the group.')
    const isNot = node.kind === 'none' || node.kind === 'not_all'
    const [only, ...others] = node.children
    const inside = isNot ? `${path}.condition` : path
    // One condition needs no group, which would count for the limits.
    const inner: SegmentCondition =
      only !== undefined && others.length === 0
        ? write(only, inside)
        : {
            type: node.kind === 'all' || node.kind === 'not_all' ? 'and' : 'or',
            conditions: node.children.map((child, index) => write(child, `${inside}.conditions[${index}]`)),
          }
    return isNot ? { type: 'not', condition: inner } : inner
  }

  const conditions = write(root, 'conditions')
  return { conditions, places, missing }
}

function missingOf(leaf: Leaf, types: Types): string | null {
  const { operator, value } = leaf
  if (!needsValue(leaf)) return null
  if (value.trim() === '') return 'Enter a value.'
  const isNumber = operator === 'in_last_days' || typeOf(leaf, types) === 'number'
  return isNumber && !Number.isFinite(Number(value)) ? 'Enter a number.' : null
}

function conditionOf(leaf: Leaf, types: Types): SegmentCondition {
  const [kind, name] = partsOf(leaf.subject)
  if (kind === 'engagement') {
    const condition: EngagementCondition = { type: 'engagement', event: name as Engagement }
    if (leaf.operator === 'in_last_days') condition.inLastDays = Number(leaf.value)
    if (leaf.campaignId !== '') condition.campaignId = leaf.campaignId
    return condition
  }
  if (kind === 'topic') return { type: 'topic', topicId: name, subscribed: leaf.operator === 'gets' }
  const operator = leaf.operator === 'exists_not' ? 'exists' : (leaf.operator as Operator)
  const compared = { operator, value: comparedValue(leaf, typeOf(leaf, types)) }
  return kind === 'field'
    ? { type: 'field', field: name as ContactField, ...compared }
    : { type: 'property', property: name, ...compared }
}

function comparedValue({ operator, value }: Leaf, type: Comparable | undefined): string | number | boolean {
  if (operator === 'exists' || operator === 'exists_not') return operator === 'exists'
  if (operator === 'in_last_days' || type === 'number') return Number(value)
  if (type === 'boolean') return value === 'true'
  if (type !== 'time') return value
  const at = new Date(value)
  return Number.isNaN(at.getTime()) ? value : at.toISOString()
}

/** Parts of a condition that a fault can be at. */
export type Part = 'subject' | 'operator' | 'value' | 'whole'

/** The faults of each node, by the key of the node and the part that is wrong. */
export type Faults = ReadonlyMap<string, Partial<Record<Part, string>>>

const parts: Readonly<Record<string, Part>> = {
  property: 'subject',
  field: 'subject',
  event: 'subject',
  topicId: 'subject',
  operator: 'operator',
  value: 'value',
  inLastDays: 'value',
  campaignId: 'value',
}

/** Returns the faults of a refusal at their conditions, and those that belong to none. */
export function faultsAt(
  places: Places,
  details: readonly { path: string; message: string }[],
): { faults: Faults; others: string[] } {
  const faults = new Map<string, Partial<Record<Part, string>>>()
  const others: string[] = []
  for (const { path, message } of details) {
    const place = path.replace(/^body\./, '')
    const [, before = '', last = ''] = /^(.*)\.(\w+)$/.exec(place) ?? []
    const part = parts[last]
    const key = part === undefined ? places.get(place) : places.get(before)
    if (key === undefined) others.push(message)
    else faults.set(key, { ...faults.get(key), [part ?? 'whole']: message })
  }
  return { faults, others }
}

/** Returns the tree with another node in place of that with `key`. Null: without it. */
export function replaced(root: Group, key: string, by: (node: Node) => Node | null): Group {
  const children = root.children.flatMap((child) => {
    if (child.key === key) {
      const next = by(child)
      return next === null ? [] : [next]
    }
    return [isGroup(child) ? replaced(child, key, by) : child]
  })
  const changed = { ...root, children }
  return root.key === key ? ((by(changed) as Group | null) ?? changed) : changed
}

/** Everything that can be compared beside properties, in the order in which it is offered. */
export const subjects = {
  fields: Object.keys(contactFields).map((name) => `field.${name}`),
  engagements: engagements.map((name) => `engagement.${name}`),
} as const
