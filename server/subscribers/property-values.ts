import { type GivenProperties, type PropertyType, propertyLimits } from '../../contract/contact-properties.ts'
import type { Properties } from '../database/tables/people.ts'
import type { ErrorDetail } from '../shared/errors.ts'

/** A declared property, as far as values are judged by it. */
export type DeclaredProperty = {
  key: string
  type: PropertyType
  /** Stands in messages for people who have no value. Null: nothing does. */
  fallback: string | number | boolean | null
}

/** The value after a change, or what is wrong with the change. */
export type PropertyChange = { properties: Properties; faults: readonly ErrorDetail[] }

/**
 * Returns the values of a person after a change, without those of properties that are not declared. Returns `before`
 * itself if nothing changes, and if there are faults: of unknown keys, wrong types, or too many bytes.
 *
 * @param at Path of the change in the request, such as `body.properties`.
 */
export function changeProperties(
  before: Properties,
  change: GivenProperties,
  declared: readonly DeclaredProperty[],
  at: string,
): PropertyChange {
  const types = new Map(declared.map(({ key, type }) => [key, type]))
  const known = Object.fromEntries(Object.entries(before).filter(([key]) => types.has(key)))
  const after = new Map(Object.entries(known))
  const faults: ErrorDetail[] = []
  for (const [key, value] of Object.entries(change)) {
    const type = types.get(key)
    const fault = type === undefined ? undeclared : faultOfValue(type, value)
    if (fault !== null) faults.push({ path: `${at}.${key}`, message: fault })
    else if (value === null) after.delete(key)
    else after.set(key, value)
  }
  const properties = Object.fromEntries(after)
  if (faults.length === 0 && Buffer.byteLength(JSON.stringify(properties)) > propertyLimits.bytes) {
    faults.push({ path: at, message: `must be at most ${propertyLimits.bytes} bytes for one person, as JSON` })
  }
  const isSame = faults.length > 0 || areSame(known, properties)
  return { properties: isSame ? before : properties, faults }
}

const undeclared = 'is no property of this account: declare it with POST /v1/contact-properties first'

const kinds: Readonly<Record<PropertyType, string>> = {
  string: `must be text of at most ${propertyLimits.valueCharacters} characters, or null`,
  number: 'must be a number, or null',
  boolean: 'must be true, false or null',
  date: 'must be a date such as "2026-03-01", or null',
}

/** Returns what is wrong with a value of a property, or null. Null is a value of every type. */
export function faultOfValue(type: PropertyType, value: string | number | boolean | null): string | null {
  const isRight =
    value === null || (type === 'date' ? typeof value === 'string' && isDate(value) : typeof value === type)
  return isRight ? null : kinds[type]
}

/** Returns true for a day of the calendar, from the year 1 on: PostgreSQL has no year 0. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text < '0001-01-01') return false
  const time = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text)
}

/** Returns true when two people have the same values. */
export function areSame(one: Properties, other: Properties): boolean {
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key])
}
