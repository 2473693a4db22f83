import type { GivenProperties } from '../../contract/contact-properties.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { Properties } from '../database/tables/people.ts'
import { brokenRules } from '../shared/errors.ts'
import { lockDeclaredProperties, selectDeclaredProperties } from './property-queries.ts'
import { changeProperties, type DeclaredProperty } from './property-values.ts'

/*
 * The declared properties of an account, and the values that people have, for this room and for others.
 */

export type { DeclaredProperty } from './property-values.ts'

/** Returns the declared properties of an account, by key: at most 100. */
export async function findProperties(handle: Handle, accountId: string): Promise<DeclaredProperty[]> {
  return selectDeclaredProperties(handle, accountId)
}

/**
 * Returns the declared properties as `findProperties`. None of them is deleted before the transaction ends: call it in
 * each transaction that writes values.
 */
export async function holdProperties(trx: Trx, accountId: string): Promise<DeclaredProperty[]> {
  return lockDeclaredProperties(trx, accountId)
}

/**
 * Returns the values of a person after a change. Throws `rule_violation` that names each unknown key and each value of a
 * wrong type, and for more bytes than a person may have. A change of nothing asks the database nothing.
 *
 * @param before The values of the person. Of one that exists, read under a lock.
 */
export async function changedProperties(
  trx: Trx,
  accountId: string,
  { before, change }: { before: Properties; change: GivenProperties | undefined },
): Promise<Properties> {
  if (change === undefined || Object.keys(change).length === 0) return before
  const declared = await holdProperties(trx, accountId)
  const { properties, faults } = changeProperties(before, change, declared, 'body.properties')
  if (faults.length > 0) throw brokenRules(faults)
  return properties
}

/** Returns the values of a person that are of declared properties, in the order of their keys. */
export type ShowProperties = (person: { properties: Properties }) => Record<string, string | number | boolean>

/**
 * Returns a function for the values that responses show. Asks the database nothing when none of the people has a value.
 */
export async function propertiesShower(
  handle: Handle,
  accountId: string,
  people: readonly { properties: Properties }[],
): Promise<ShowProperties> {
  if (people.every(({ properties }) => Object.keys(properties).length === 0)) return () => ({})
  const declared = await findProperties(handle, accountId)
  return ({ properties }) => declaredOf(properties, declared)
}

/** Returns those values that are of declared properties, in the order of `declared`. */
function declaredOf(
  properties: Properties,
  declared: readonly DeclaredProperty[],
): Record<string, string | number | boolean> {
  return Object.fromEntries(
    declared.flatMap(({ key }) => {
      const value = Object.hasOwn(properties, key) ? properties[key] : undefined
      return value === undefined ? [] : [[key, value]]
    }),
  )
}

/**
 * Returns the values that stand in a message to a person: of each declared property, that of the person, or else its
 * fallback, which may be null.
 */
export function valuesInMessages(
  properties: Properties,
  declared: readonly DeclaredProperty[],
): Record<string, string | number | boolean | null> {
  return Object.fromEntries(
    declared.map(({ key, fallback }) => [
      key,
      (Object.hasOwn(properties, key) ? properties[key] : undefined) ?? fallback,
    ]),
  )
}
