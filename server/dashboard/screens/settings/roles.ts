import type { Role } from '../../../../contract/roles.ts'

export const roleLabels: Readonly<Record<Role, { label: string; description: string }>> = {
  owner: { label: 'Owner', description: 'Everything, also making and removing owners.' },
  admin: { label: 'Admin', description: 'Everything but owners.' },
  developer: { label: 'Developer', description: 'Everything but members.' },
  marketer: { label: 'Marketer', description: 'Emails, subscribers, audiences and suppressions.' },
  viewer: { label: 'Viewer', description: 'Sees emails, people, domains, webhooks and events. Changes nothing.' },
}

/** Returns the roles that a person of `role` may give to others. */
export function rolesGivenBy(role: Role): Role[] {
  const roles = Object.keys(roleLabels) as Role[]
  return role === 'owner' ? roles : roles.filter((given) => given !== 'owner')
}
