import { ActionIcon, Button, Menu } from '@mantine/core'
import { IconChevronDown, IconDots } from '@tabler/icons-react'
import type { ReactNode } from 'react'

/**
 * The menu at the end of a row.
 *
 * @param props.of The name of the row's object, for screen readers.
 * @param props.children Items of a Mantine `Menu`.
 */
export function RowMenu({ of, children }: { of: string; children: ReactNode }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Actions for ${of}`}>
          <IconDots size={16} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  )
}

/**
 * The menu of the object that a screen is about, for what is done seldom.
 *
 * @param props.children Items of a Mantine `Menu`.
 */
export function MoreMenu({ children }: { children: ReactNode }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" rightSection={<IconChevronDown size={14} aria-hidden />}>
          More
        </Button>
      </Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  )
}
