import { Menu, Text, UnstyledButton, useMantineColorScheme } from '@mantine/core'
import {
  IconBook,
  IconCheck,
  IconDeviceDesktop,
  IconLogout,
  IconMoon,
  IconSelector,
  IconServer,
  IconSun,
} from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import { useScope } from '../api/scope.tsx'
import { useSignOut } from './sign-out.ts'

const schemes = [
  { value: 'light', label: 'Light', icon: IconSun },
  { value: 'dark', label: 'Dark', icon: IconMoon },
  { value: 'auto', label: 'As the system', icon: IconDeviceDesktop },
] as const

export function UserMenu() {
  const { user } = useScope().session
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const signOut = useSignOut()
  return (
    <Menu width={210} position="top-start">
      <Menu.Target>
        <UnstyledButton className="account-button plain">
          <span className="account-name">
            <Text span truncate>
              {user.name}
            </Text>
            <Text span fz="xs" c="dimmed" truncate>
              {user.email}
            </Text>
          </span>
          <IconSelector size={16} aria-hidden />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Appearance</Menu.Label>
        {schemes.map(({ value, label, icon: Icon }) => (
          <Menu.Item
            key={value}
            leftSection={<Icon size={16} aria-hidden />}
            rightSection={colorScheme === value ? <IconCheck size={16} aria-label="current" /> : null}
            onClick={() => setColorScheme(value)}
          >
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        {user.isOperator && (
          <Menu.Item component={Link} to="/operator/accounts" leftSection={<IconServer size={16} aria-hidden />}>
            Operator
          </Menu.Item>
        )}
        <Menu.Item component="a" href="/docs" target="_blank" leftSection={<IconBook size={16} aria-hidden />}>
          API reference
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} aria-hidden />} onClick={() => void signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
