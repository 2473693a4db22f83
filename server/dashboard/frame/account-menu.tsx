import { Menu, Text, UnstyledButton } from '@mantine/core'
import { IconCheck, IconSelector } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { useScope } from '../api/scope.tsx'

/** The name of the account, and the way to the other accounts of the user. */
export function AccountMenu() {
  const { session, account, mode } = useScope()
  const navigate = useNavigate()
  const others = session.accounts.length > 1
  const name = (
    <span className="account-name">
      <Text span fw={550} truncate>
        {account.name}
      </Text>
      <Text span fz="xs" c="dimmed">
        {account.role}
      </Text>
    </span>
  )
  if (!others) return <div className="account-button">{name}</div>
  return (
    <Menu width="target" position="bottom-start">
      <Menu.Target>
        <UnstyledButton className="account-button" aria-label={`Account ${account.name}: switch`}>
          {name}
          <IconSelector size={16} aria-hidden />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        {session.accounts.map(({ id, name: label }) => (
          <Menu.Item
            key={id}
            rightSection={id === account.id ? <IconCheck size={16} aria-label="current" /> : null}
            onClick={() => void navigate({ to: '/$account/$mode/overview', params: { account: id, mode } })}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
