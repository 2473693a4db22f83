/** What a key may be allowed to do; each route of the contract names exactly one. */
export const permissions = [
  'audiences:read',
  'audiences:write',
  'contacts:read',
  'contacts:write',
  'domains:read',
  'domains:write',
  'emails:read',
  'emails:send',
  'events:read',
  'subscribers:read',
  'subscribers:write',
  'suppressions:read',
  'suppressions:write',
  'webhooks:read',
  'webhooks:write',
] as const

export type Permission = (typeof permissions)[number]

/** Names for the sets of permissions most keys need. */
export const permissionSets = {
  full_access: permissions,
  sending_access: ['emails:send', 'emails:read'],
  read_access: permissions.filter((permission) => permission.endsWith(':read')),
} as const satisfies Record<string, readonly Permission[]>

export type PermissionSet = keyof typeof permissionSets

/** What is stored with a key: names of sets and single permissions, mixed freely. */
export type Grant = Permission | PermissionSet

export const grants: readonly Grant[] = [...(Object.keys(permissionSets) as PermissionSet[]), ...permissions]

/** Whether `held`, the grants of a key, include `needed`. Unknown grants (of a later version) grant nothing. */
export function isGranted(held: readonly string[], needed: Permission): boolean {
  return held.some(
    (grant) =>
      grant === needed ||
      (Object.hasOwn(permissionSets, grant) &&
        (permissionSets[grant as PermissionSet] as readonly string[]).includes(needed)),
  )
}
