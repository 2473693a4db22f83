import { Outlet, useLocation } from '@tanstack/react-router'
import { useScope } from '../api/scope.tsx'
import { RoleRefusal } from '../components/role-refusal.tsx'
import { navigation } from './navigation.ts'

const items = navigation.flatMap((group) => group.items)

/** The screen of the address. In its place, for a role without its permission: who can change that. */
export function AllowedScreen() {
  const { can } = useScope()
  const { pathname } = useLocation()
  const screen = `/${pathname.split('/').slice(3).join('/')}`
  const item = items.find(({ path }) => screen === path || screen.startsWith(`${path}/`))
  if (item === undefined || item.permission === null || can(item.permission)) return <Outlet />
  return <RoleRefusal title={item.label} permission={item.permission} />
}
