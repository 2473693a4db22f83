import type { DomainRecord } from '../../contract/domains.ts'
import { printable } from '../lib/printable.ts'

/** The result of a check of one record. */
export type RecordCheck = Pick<DomainRecord, 'status' | 'hint'>

export const found: RecordCheck = { status: 'verified', hint: null }
export const missing: RecordCheck = { status: 'missing', hint: null }

export function mismatch(hint: string): RecordCheck {
  return { status: 'mismatch', hint }
}

export function multiple(hint: string): RecordCheck {
  return { status: 'multiple', hint }
}

const maxQuoted = 200

/** Returns a published value in quotation marks, shortened and on one line. */
export function quoted(value: string): string {
  const shown = value.length > maxQuoted ? `${value.slice(0, maxQuoted)}…` : value
  return `"${printable(shown)}"`
}
