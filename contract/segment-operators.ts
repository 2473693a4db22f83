import type { PropertyType } from './contact-properties.ts'

/*
 * The types, fields and operators of conditions of segments: tables that the contract, the server, the documents and
 * the dashboard read. Without zod, so that the dashboard can import them.
 */

/** The type of a value that a condition compares: of a property, a time or a status. */
export type Comparable = PropertyType | 'time' | 'status'

/** The operators that each type has. */
export const operatorsOf = {
  string: ['is', 'is_not', 'contains', 'starts_with', 'exists'],
  number: ['is', 'is_not', 'less_than', 'at_most', 'greater_than', 'at_least', 'exists'],
  boolean: ['is', 'is_not', 'exists'],
  date: ['is', 'is_not', 'before', 'after', 'in_last_days', 'exists'],
  time: ['before', 'after', 'in_last_days'],
  status: ['is', 'is_not'],
} as const satisfies Record<Comparable, readonly string[]>

export type Operator = (typeof operatorsOf)[Comparable][number]

/** All operators, each once. */
export const operators = [...new Set<Operator>(Object.values(operatorsOf).flat())] as [Operator, ...Operator[]]

/** The fields of every contact, with their types. */
export const contactFields = {
  email: 'string',
  emailDomain: 'string',
  firstName: 'string',
  lastName: 'string',
  status: 'status',
  subscriberStatus: 'status',
  createdAt: 'time',
} as const satisfies Record<string, Comparable>

export type ContactField = keyof typeof contactFields

/** The possible events of an email to a contact. */
export const engagements = ['sent', 'received', 'opened', 'clicked'] as const

export type Engagement = (typeof engagements)[number]

/** How large the conditions of a segment may be. */
export const conditionLimits = {
  /** Conditions and groups together. */
  conditions: 50,
  /** Groups within groups: a single condition has a depth of 1. */
  depth: 5,
  valueCharacters: 500,
  days: 3_650,
} as const
