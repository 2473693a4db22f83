import { type Role, rolePermissions } from '../../contract/roles.ts'

/**
 * Returns true when somebody with the role `own` may make a member of the role `from` one of the role `to`. Null: the
 * person is no member, or shall be none any more.
 *
 * Only an owner makes, changes and removes owners, and nobody gives a permission that they do not have.
 */
export function mayAssign(own: Role, { from, to }: { from: Role | null; to: Role | null }): boolean {
  if (own === 'owner') return true
  const held: readonly string[] = rolePermissions[own]
  if (!held.includes('members:write') || from === 'owner' || to === 'owner') return false
  return to === null || rolePermissions[to].every((permission) => held.includes(permission))
}
