import { type KeyPermission, type PermissionSet, permissionSets } from '../../../../contract/permissions.ts'

export const setLabels: Readonly<Record<PermissionSet, { label: string; description: string }>> = {
  full_access: { label: 'Full access', description: 'Everything that keys can do.' },
  sending_access: { label: 'Sending', description: 'Send emails and see what became of them.' },
  read_access: { label: 'Reading', description: 'See emails, people, domains, webhooks and events. Change nothing.' },
}

/** Returns the permissions of a key for people, such as "Full access" or "emails:read, events:read". */
export function describeGrants(grants: readonly string[]): string {
  return grants.map((grant) => (isSet(grant) ? setLabels[grant].label : grant)).join(', ')
}

function isSet(grant: string): grant is PermissionSet {
  return Object.hasOwn(permissionSets, grant)
}

/** All permissions of keys, by what they are about. */
export function permissionsByResource(): [resource: string, permissions: KeyPermission[]][] {
  const groups = new Map<string, KeyPermission[]>()
  for (const permission of permissionSets.full_access) {
    const [resource = ''] = permission.split(':')
    groups.set(resource, [...(groups.get(resource) ?? []), permission])
  }
  return [...groups]
}
