import type { PropertyType } from '../../contract/contact-properties.ts'
import { timeInput } from '../../contract/fields.ts'
import type { Comparison, SegmentCondition } from '../../contract/segment-conditions.ts'
import { type Comparable, conditionLimits, contactFields, operatorsOf } from '../../contract/segment-operators.ts'
import { subscriptionStatus } from '../../contract/subscribers.ts'
import type { ErrorDetail } from '../shared/errors.ts'
import { isDate } from '../subscribers/property-values.ts'
import type { TopicDefaults } from '../topics/choices.ts'

/** The types of the declared properties of an account, by key. */
export type PropertyTypes = ReadonlyMap<string, PropertyType>

/** The properties and topics of an account at one moment: conditions can name them. */
export type Named = { types: PropertyTypes; topics: TopicDefaults }

/**
 * Returns what is wrong with conditions beyond what their schema says: properties that are not declared, topics that are
 * not there, operators that a type does not have, and values of another type.
 *
 * @param path Where the conditions stand, such as `body.conditions`.
 */
export function conditionFaults(condition: SegmentCondition, named: Named, path: string): ErrorDetail[] {
  switch (condition.type) {
    case 'and':
    case 'or':
      return condition.conditions.flatMap((inner, index) =>
        conditionFaults(inner, named, `${path}.conditions[${index}]`),
      )
    case 'not':
      return conditionFaults(condition.condition, named, `${path}.condition`)
    case 'engagement':
      return []
    case 'topic': {
      if (named.topics.has(condition.topicId)) return []
      return [{ path: `${path}.topicId`, message: `the account has no topic "${condition.topicId}"` }]
    }
    default:
      return comparisonFaults(condition, named.types, path)
  }
}

function comparisonFaults(comparison: Comparison, types: PropertyTypes, path: string): ErrorDetail[] {
  const type = comparison.type === 'field' ? contactFields[comparison.field] : types.get(comparison.property)
  if (type === undefined) {
    const { property } = comparison as { property: string }
    return [{ path: `${path}.property`, message: `the account has no contact property "${property}"` }]
  }
  const { operator } = comparison
  const known: readonly string[] = operatorsOf[type]
  if (!known.includes(operator)) {
    return [{ path: `${path}.operator`, message: `must be one of ${known.join(', ')} for a ${type}` }]
  }
  const message = valueFault(type, comparison)
  return message === null ? [] : [{ path: `${path}.value`, message }]
}

const { days: maxDays } = conditionLimits

/** Returns what is wrong with the value of a comparison, whose operator the type has. */
function valueFault(type: Comparable, comparison: Comparison): string | null {
  const { operator, value } = comparison
  if (operator === 'exists') return told(typeof value === 'boolean', 'true or false')
  if (operator === 'in_last_days') {
    const isRight = Number.isInteger(value) && Number(value) >= 1 && Number(value) <= maxDays
    return told(isRight, `a whole number of days from 1 to ${maxDays}`)
  }
  switch (type) {
    case 'string':
      return told(typeof value === 'string', 'text')
    case 'number':
      return told(typeof value === 'number', 'a number')
    case 'boolean':
      return told(typeof value === 'boolean', 'true or false')
    case 'date':
      return told(typeof value === 'string' && isDate(value), 'a date such as "2026-03-01"')
    case 'time':
      return told(timeInput.safeParse(value).success, 'a time such as "2026-03-01T09:30:00Z"')
    case 'status':
      // Only contacts are pending.
      return comparison.type === 'field' && comparison.field === 'subscriberStatus'
        ? told(value === 'active' || value === 'unsubscribed', '"active" or "unsubscribed"')
        : told(subscriptionStatus.safeParse(value).success, '"active", "unsubscribed" or "pending"')
  }
}

function told(isRight: boolean, expected: string): string | null {
  return isRight ? null : `must be ${expected}`
}
