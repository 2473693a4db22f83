import { Outlet, useLocation } from '@tanstack/react-router'
import { useScope } from '../api/scope.tsx'
import { Empty } from '../components/empty.tsx'
import { Screen } from '../components/screen.tsx'
import { navigation } from './navigation.ts'

const items = navigation.flatMap((group) => group.items)

/** The screen of the address. In its place, for a role without its permission: who can change that. */
export function AllowedScreen() {
  const { account, can } = useScope()
  const { pathname } = useLocation()
  const screen = `/${pathname.split('/').slice(3).join('/')}`
  const item = items.find(({ path }) => screen === path || screen.startsWith(`${path}/`))
  if (item === undefined || item.permission === null || can(item.permission)) return <Outlet />
  return (
    <Screen title={item.label}>
      <Empty title="Your role does not allow this">
        The role {account.role} lacks the permission <code>{item.permission}</code>. Ask an owner or admin of{' '}
        {account.name} for another role.
      </Empty>
    </Screen>
  )
}
