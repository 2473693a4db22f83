import type { Result } from '../../api/client.ts'

export type Subscriber = Result<'GET /v1/subscribers/:id'>
export type Contact = Result<'GET /v1/audiences/:audienceId/contacts/:subscriberId'>

/** The values of the status of a person, for a filter. */
export const statusOptions = [
  { value: 'active', label: 'Active' },
  { value: 'unsubscribed', label: 'Unsubscribed' },
]

/** The values of the status of a contact. */
export const contactStatusOptions = [...statusOptions, { value: 'pending', label: 'Pending' }]

/** Returns the name of a person in one line; a dash where none is known. */
export function nameOf({ firstName, lastName }: Pick<Subscriber, 'firstName' | 'lastName'>): string {
  return [firstName, lastName].filter((part) => part !== null && part !== '').join(' ') || '–'
}
