import type { GivenProperties } from '../../contract/contact-properties.ts'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import { addressKey } from '../message/address.ts'
import { changeProperties, type DeclaredProperty } from '../subscribers/property-values.ts'

/** A row of a batch: a person and their contact. What is not given stays as it is, and null takes it away. */
export type BatchRow = {
  email: string
  firstName?: string | null | undefined
  lastName?: string | null | undefined
  properties?: GivenProperties | undefined
  /**
   * Of a new contact. `active` never undoes an unsubscription. Default: `active`, or `pending` where the audience asks
   * people to confirm.
   */
  status?: SubscriptionStatus | undefined
}

/** The handling of people who are there already. `skip`: they stay as they are. */
export type Conflict = 'update' | 'skip'

/** The rows with one address, merged to one. */
export type MergedRow = BatchRow & {
  emailKey: string
  /** Index of the first row. */
  index: number
  /** The later rows, and whether they added to what the rows before said. */
  repeated: { index: number; isChange: boolean }[]
}

export type MergedRows = {
  /** One for each address, in the order of their first rows. */
  people: MergedRow[]
  refused: { index: number; reason: string }[]
}

/**
 * Merges rows with the same address, in any letter case. A later row wins with `update`, and changes nothing with
 * `skip`. Refuses rows with properties that are not declared or of another type.
 */
export function mergeRows(
  rows: readonly BatchRow[],
  { declared, conflict }: { declared: readonly DeclaredProperty[]; conflict: Conflict },
): MergedRows {
  const people = new Map<string, MergedRow>()
  const refused: MergedRows['refused'] = []
  for (const [index, row] of rows.entries()) {
    const reason = row.properties === undefined ? null : faultIn(row.properties, declared)
    if (reason !== null) {
      refused.push({ index, reason })
      continue
    }
    const emailKey = addressKey(row.email)
    const before = people.get(emailKey)
    if (before === undefined) {
      people.set(emailKey, { ...row, emailKey, index, repeated: [] })
      continue
    }
    // All rows of one person together may have too many bytes.
    const together = row.properties && faultIn({ ...before.properties, ...row.properties }, declared)
    if (together) refused.push({ index, reason: together })
    else before.repeated.push({ index, isChange: conflict === 'update' && merge(before, row) })
  }
  return { people: [...people.values()], refused }
}

/** Returns why the properties of a row are refused, or null. */
function faultIn(properties: GivenProperties, declared: readonly DeclaredProperty[]): string | null {
  const { faults } = changeProperties({}, properties, declared, 'properties')
  return faults.length === 0 ? null : faults.map(({ path, message }) => `${path} ${message}`).join('; ')
}

/** Adds what a later row says. Returns true if that differs from what the rows before said. */
function merge(into: MergedRow, { firstName, lastName, properties, status }: BatchRow): boolean {
  let isChange = false
  if (firstName !== undefined && firstName !== into.firstName) {
    into.firstName = firstName
    isChange = true
  }
  if (lastName !== undefined && lastName !== into.lastName) {
    into.lastName = lastName
    isChange = true
  }
  // Who unsubscribed in an earlier row stays so.
  if (status === 'unsubscribed' && into.status !== 'unsubscribed') {
    into.status = status
    isChange = true
  }
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (into.properties?.[key] === value) continue
    into.properties = { ...into.properties, [key]: value }
    isChange = true
  }
  return isChange
}
