import { z } from 'zod'
import { keyPermissions, type Permission, permissions, readPermissions } from './permissions.ts'

/** The roles of people in an account, the mightiest first. Each is a list of permissions. */
export const rolePermissions = {
  owner: permissions,
  // Has all permissions too; that only owners make, change and remove owners is a rule of its own.
  admin: permissions,
  developer: keyPermissions,
  marketer: [
    'audiences:read',
    'audiences:write',
    'campaigns:read',
    'campaigns:send',
    'campaigns:write',
    'contacts:read',
    'contacts:write',
    'domains:read',
    'emails:read',
    'emails:send',
    'events:read',
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
  ],
  viewer: readPermissions,
} as const satisfies Record<string, readonly Permission[]>

export type Role = keyof typeof rolePermissions

export const roles = Object.keys(rolePermissions) as [Role, ...Role[]]

export const role = z.enum(roles).meta({
  id: 'Role',
  description:
    'What a person may do in an account. `owner`: everything. `admin`: everything, but not to make, change or remove owners. `developer`: everything but members. `marketer`: email, templates, people and lists. `viewer`: reads all of these and domains, webhooks and events.',
  example: 'developer',
})
