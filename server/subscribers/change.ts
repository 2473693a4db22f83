import type { EventData } from '../../contract/event-types.ts'
import type { PersonStatus } from '../../contract/subscribers.ts'
import type { Properties } from '../database/tables/people.ts'
import { areSame } from './property-values.ts'

/** A requested change of a person. An absent field stays unchanged. */
export type SubscriberPatch = {
  email?: string | undefined
  firstName?: string | null | undefined
  lastName?: string | null | undefined
  status?: PersonStatus | undefined
  /** All values after the change. */
  properties?: Properties | undefined
}

/** The fields of a person that are compared. */
export type SubscriberState = {
  email: string
  firstName: string | null
  lastName: string | null
  status: PersonStatus
  properties: Properties
}

export type ChangedField = EventData<'contact.updated'>['changes'][number]

export type SubscriberChange = {
  after: SubscriberState
  /** The fields that differ, in the order of the published schema. */
  changed: readonly ChangedField[]
}

const fields = ['email', 'firstName', 'lastName', 'properties', 'status'] as const satisfies readonly ChangedField[]

/** Compares a requested change with the present state. */
export function subscriberChange(before: SubscriberState, patch: SubscriberPatch): SubscriberChange {
  const after: SubscriberState = {
    email: patch.email ?? before.email,
    firstName: patch.firstName === undefined ? before.firstName : patch.firstName,
    lastName: patch.lastName === undefined ? before.lastName : patch.lastName,
    status: patch.status ?? before.status,
    properties: patch.properties ?? before.properties,
  }
  const isChanged = (field: (typeof fields)[number]) =>
    field === 'properties' ? !areSame(after.properties, before.properties) : after[field] !== before[field]
  return { after, changed: fields.filter(isChanged) }
}
