import type { SegmentCondition } from '../../../../contract/segment-conditions.ts'
import type { Result } from '../../api/client.ts'

export type Property = Result<'GET /v1/contact-properties'>['data'][number]
export type PropertyValue = NonNullable<Property['fallback']>

/** The types, for people. */
export const typeLabels: Readonly<Record<Property['type'], string>> = {
  string: 'Text',
  number: 'Number',
  boolean: 'Yes or no',
  date: 'Date',
}

/** Returns what is typed as a value of a type. Null: nothing is typed, which is no value. */
export function valueTyped(type: Property['type'], typed: string): PropertyValue | null {
  if (typed === '') return null
  if (type === 'number') return Number(typed)
  return type === 'boolean' ? typed === 'true' : typed
}

/** Returns a value as an input has it. */
export function typedOf(value: PropertyValue | null | undefined): string {
  return value === null || value === undefined ? '' : String(value)
}

/** Returns a value for people. */
export function shownValue(value: PropertyValue): string {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  return String(value)
}

/** Returns true when conditions of a segment compare a property. */
export function compares(condition: SegmentCondition, key: string): boolean {
  switch (condition.type) {
    case 'and':
    case 'or':
      return condition.conditions.some((inner) => compares(inner, key))
    case 'not':
      return compares(condition.condition, key)
    default:
      return condition.type === 'property' && condition.property === key
  }
}
