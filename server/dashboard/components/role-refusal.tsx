import type { Permission } from '../../../contract/permissions.ts'
import { useScope } from '../api/scope.tsx'
import { Empty } from './empty.tsx'
import { Screen } from './screen.tsx'

/** Stands in place of a screen for a role without its permission: who can change that. */
export function RoleRefusal({ title, permission }: { title: string; permission: Permission }) {
  const { account } = useScope()
  return (
    <Screen title={title}>
      <Empty title="Your role does not allow this">
        The role {account.role} lacks the permission <code>{permission}</code>. Ask an owner or admin of {account.name}{' '}
        for another role.
      </Empty>
    </Screen>
  )
}
