import {
  type Comparable,
  type ContactField,
  type Engagement,
  type Operator,
  operatorsOf,
} from '../../../../contract/segment-operators.ts'
import { type GroupKind, isEngagement, isTopic, type Leaf } from './condition-tree.ts'

export const fieldLabels: Readonly<Record<ContactField, string>> = {
  email: 'Email address',
  emailDomain: 'Domain of the address',
  firstName: 'First name',
  lastName: 'Last name',
  status: 'State in this audience',
  subscriberStatus: 'State of the person',
  createdAt: 'Added to this audience',
}

export const engagementLabels: Readonly<Record<Engagement, string>> = {
  sent: 'Was sent an email',
  received: 'Received an email',
  opened: 'Opened an email',
  clicked: 'Followed a link',
}

export const kindLabels: Readonly<Record<GroupKind, string>> = {
  all: 'All of these hold',
  any: 'At least one of these holds',
  none: 'None of these holds',
  not_all: 'Not all of these hold',
}

const operatorLabels: Readonly<Record<Operator, string>> = {
  is: 'is',
  is_not: 'is not',
  contains: 'contains',
  starts_with: 'begins with',
  exists: 'has a value',
  less_than: 'is less than',
  at_most: 'is at most',
  greater_than: 'is greater than',
  at_least: 'is at least',
  before: 'is before',
  after: 'is after',
  in_last_days: 'was in the last … days',
}

export type OperatorOption = { value: Leaf['operator']; label: string }

/**
 * Returns the operators that a condition can have, for people. None: its property is not declared.
 *
 * @param type Of what it compares; undefined for engagement and topics.
 */
export function operatorOptions(leaf: Leaf, type: Comparable | undefined): OperatorOption[] {
  if (isEngagement(leaf)) {
    return [
      { value: 'ever', label: 'at any time' },
      { value: 'in_last_days', label: 'in the last … days' },
    ]
  }
  if (isTopic(leaf)) {
    return [
      { value: 'gets', label: 'is subscribed to' },
      { value: 'gets_not', label: 'is not subscribed to' },
    ]
  }
  if (type === undefined) return []
  return operatorsOf[type].flatMap((operator: Operator): OperatorOption[] => [
    { value: operator, label: operatorLabels[operator] },
    ...(operator === 'exists' ? [{ value: 'exists_not' as const, label: 'has no value' }] : []),
  ])
}
