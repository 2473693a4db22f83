import type { GivenProperties } from '../../contract/contact-properties.ts'
import { propertyLimits } from '../../contract/contact-properties.ts'
import { emailAddress } from '../../contract/fields.ts'
import { personName, type SubscriptionStatus } from '../../contract/subscribers.ts'
import type { BatchRow } from '../audiences/contact-batch.ts'
import type { ImportColumn } from '../database/tables/imports.ts'
import type { DeclaredProperty } from '../subscribers/property-values.ts'
import { isDate } from '../subscribers/property-values.ts'
import { kindByStatus, knownStatuses, type RowKind } from './fields.ts'

/** The result of reading a row of a file. */
export type ReadRow =
  | { kind: 'contact'; row: BatchRow }
  | { kind: 'suppression'; address: string; reason: 'unsubscribe' | 'hard_bounce' }
  | { kind: 'failed'; reason: string }

export type RowReaderOptions = {
  columns: readonly ImportColumn[]
  declared: readonly DeclaredProperty[]
  contactStatus: SubscriptionStatus
  suppressesAs: 'unsubscribe' | 'hard_bounce' | null
}

/** Returns a function that reads the cells of a row. An empty cell says nothing. */
export function createRowReader({ columns, declared, contactStatus, suppressesAs }: RowReaderOptions) {
  const places = columns.flatMap(({ field }, place) => (field === 'ignore' ? [] : [{ field, place }]))
  const typeOf = new Map(declared.map(({ key, type }) => [key, type]))

  function readProperty(key: string, cell: string): string | number | boolean | Fault {
    const type = typeOf.get(key)
    if (type === undefined) return new Fault(`the property ${key} was deleted`)
    const value = readValue(type, cell)
    return value === null ? new Fault(`${key} ${kinds[type]}`) : value
  }

  return function readRow(cells: readonly string[]): ReadRow {
    if (cells.length !== columns.length) {
      return failed(`the row has ${cells.length} cells, and the head has ${columns.length}`)
    }
    const row: BatchRow = { email: '', status: contactStatus }
    let properties: Record<string, string | number | boolean> | undefined
    let kind: RowKind = suppressesAs ?? 'contact'
    for (const { field, place } of places) {
      const cell = (cells[place] ?? '').trim()
      if (cell === '') continue
      if (field === 'email') row.email = cell
      else if (field === 'firstName' || field === 'lastName') {
        if (!personName.safeParse(cell).success) return failed(`${field} ${nameFault}`)
        row[field] = cell
      } else if (field === 'name') {
        if (!personName.safeParse(cell).success) return failed(`name ${nameFault}`)
        const space = cell.indexOf(' ')
        row.firstName ??= space < 0 ? cell : cell.slice(0, space)
        if (space > 0) row.lastName ??= cell.slice(space + 1).trim()
      } else if (field === 'status') {
        const known = kindByStatus(cell)
        if (known === null) {
          return failed(`the status ${JSON.stringify(cell.slice(0, 50))} is not known: ${knownStatuses.join(', ')} are`)
        }
        if (kind === 'contact') kind = known
      } else if (field === 'attributes') {
        const attributes = readAttributes(cell)
        if (attributes === null) return failed('attributes must be a JSON object')
        for (const [key, value] of Object.entries(attributes)) {
          // Properties that the account has not declared are not kept.
          if (!typeOf.has(key) || value === null || typeof value === 'object' || value === '') continue
          const read = readProperty(key, String(value))
          if (read instanceof Fault) return failed(read.reason)
          properties ??= {}
          properties[key] = read
        }
      } else {
        const key = field.slice('properties.'.length)
        const value = readProperty(key, cell)
        if (value instanceof Fault) return failed(value.reason)
        properties ??= {}
        properties[key] = value
      }
    }
    if (!emailAddress.safeParse(row.email).success) {
      return failed(row.email === '' ? 'there is no address' : 'the address is not an email address')
    }
    if (kind === 'pending') row.status = kind
    else if (kind !== 'contact') return { kind: 'suppression', address: row.email, reason: kind }
    if (properties !== undefined) row.properties = properties satisfies GivenProperties
    return { kind: 'contact', row }
  }
}

class Fault {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

function failed(reason: string): ReadRow {
  return { kind: 'failed', reason }
}

const nameFault = 'must be text of at most 200 characters, without U+0000'

const kinds: Readonly<Record<DeclaredProperty['type'], string>> = {
  string: `must be text of at most ${propertyLimits.valueCharacters} characters, without U+0000`,
  number: 'must be a number, such as 12.5',
  boolean: 'must be true, false, yes, no, 1 or 0',
  date: 'must be a date, such as 2026-03-01',
}

const booleans: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  1: true,
  false: false,
  no: false,
  0: false,
}

/** Returns the value that a cell says, or null if it says none of the type. */
function readValue(type: DeclaredProperty['type'], cell: string): string | number | boolean | null {
  switch (type) {
    case 'string':
      return [...cell.slice(0, 2 * propertyLimits.valueCharacters + 1)].length <= propertyLimits.valueCharacters &&
        cell.isWellFormed() &&
        !cell.includes('\u0000')
        ? cell
        : null
    case 'number':
      return cell.length <= 50 && /^[+-]?\d+(\.\d+)?(e[+-]?\d{1,3})?$/i.test(cell) && Number.isFinite(Number(cell))
        ? Number(cell)
        : null
    case 'boolean': {
      const plain = cell.slice(0, 10).toLowerCase()
      return Object.hasOwn(booleans, plain) ? (booleans[plain] ?? null) : null
    }
    case 'date': {
      // Of a time, the day that is written.
      const day = /^(\d{4}-\d{2}-\d{2})(?:[T ]\d{2}:\d{2}[\d:.+Z-]*)?$/.exec(cell.slice(0, 40))?.[1]
      return day !== undefined && isDate(day) ? day : null
    }
  }
}

function readAttributes(cell: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(cell)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null
  } catch {
    return null
  }
}
