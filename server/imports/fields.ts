import { importFields } from '../../contract/import-files.ts'

/** Returns what is wrong with a field that a request names, or null. */
export function fieldFault(field: string, propertyKeys: readonly string[]): string | null {
  const [, key] = /^properties\.(.*)$/.exec(field) ?? []
  if (key === undefined) {
    return (importFields as readonly string[]).includes(field)
      ? null
      : `must be one of ${importFields.join(', ')}, or properties. with the key of a property`
  }
  return propertyKeys.includes(key) ? null : `"${key}" is no property of this account: declare it first`
}

/** The kind of a row by its `status`: a contact, one that has not confirmed, or an address for the suppression list. */
export type RowKind = 'contact' | 'pending' | 'unsubscribe' | 'hard_bounce'

const kindsByStatus: Readonly<Record<string, RowKind>> = {
  '': 'contact',
  active: 'contact',
  enabled: 'contact',
  subscribed: 'contact',
  confirmed: 'contact',
  pending: 'pending',
  unconfirmed: 'pending',
  unsubscribed: 'unsubscribe',
  disabled: 'unsubscribe',
  blocklisted: 'unsubscribe',
  blacklisted: 'unsubscribe',
  cleaned: 'hard_bounce',
  bounced: 'hard_bounce',
}

/** Returns null for a status that is not known. */
export function kindByStatus(status: string): RowKind | null {
  const plain = status.toLowerCase()
  return (Object.hasOwn(kindsByStatus, plain) ? kindsByStatus[plain] : undefined) ?? null
}

/** Statuses that are known, for people. */
export const knownStatuses = Object.keys(kindsByStatus).filter((status) => status !== '')
