/** The permissions that an API key can have. */
export const keyPermissions = [
  'api_keys:read',
  'api_keys:write',
  'audiences:read',
  'audiences:write',
  'audit_log:read',
  'campaigns:read',
  'campaigns:send',
  'campaigns:write',
  'contacts:read',
  'contacts:write',
  'domains:read',
  'domains:write',
  'emails:read',
  'emails:send',
  'events:read',
  'request_logs:read',
  'segments:read',
  'segments:write',
  'statistics:read',
  'subscribers:read',
  'subscribers:write',
  'suppressions:read',
  'suppressions:write',
  'templates:read',
  'templates:write',
  'topics:read',
  'topics:write',
  'webhooks:read',
  'webhooks:write',
] as const

export type KeyPermission = (typeof keyPermissions)[number]

/** Everything that a caller may be allowed to do. Members are managed by people alone: no key has these two. */
export const permissions = [...keyPermissions, 'members:read', 'members:write'] as const

export type Permission = (typeof permissions)[number]

/** Who may use an account, and what was done: not part of reading or sending. */
const administration: readonly Permission[] = ['api_keys:read', 'audit_log:read', 'members:read', 'request_logs:read']

/** The permissions to read what the service works with: email, people, domains, webhooks and events. */
export const readPermissions: readonly KeyPermission[] = keyPermissions.filter(
  (permission) => permission.endsWith(':read') && !administration.includes(permission),
)

/** Names for the sets of permissions most keys need. */
export const permissionSets = {
  full_access: keyPermissions,
  sending_access: ['emails:send', 'emails:read'],
  read_access: readPermissions,
} as const satisfies Record<string, readonly KeyPermission[]>

export type PermissionSet = keyof typeof permissionSets

/** A permission of a key, as it is stored: the name of a set, or a single permission. A key can have both. */
export type Grant = KeyPermission | PermissionSet

export const grants: readonly Grant[] = [...(Object.keys(permissionSets) as PermissionSet[]), ...keyPermissions]

/** Returns true when the grants `held` include `needed`. Unknown grants (of a later version) grant nothing. */
export function isGranted(held: readonly string[], needed: Permission): boolean {
  return held.some(
    (grant) =>
      grant === needed ||
      (Object.hasOwn(permissionSets, grant) &&
        (permissionSets[grant as PermissionSet] as readonly string[]).includes(needed)),
  )
}
