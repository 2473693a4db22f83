import { type Role, rolePermissions } from '../../contract/roles.ts'

/**
 * Returns true when a member with the role `own` may change the role of a person from `from` to `to`. Null as `from`:
 * the person is no member yet. Null as `to`: the person is removed.
 *
 * Only an owner makes, changes and removes owners, and no member gives a permission that they do not have.
 */
export function mayAssign(own: Role, { from, to }: { from: Role | null; to: Role | null }): boolean {
  if (own === 'owner') return true
  const held: readonly string[] = rolePermissions[own]
  if (!held.includes('members:write') || from === 'owner' || to === 'owner') return false
  return to === null || rolePermissions[to].every((permission) => held.includes(permission))
}
