import { Button, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'

/** A placeholder where there is nothing yet: why, and what to do next. */
export function Empty({ title, children, action }: { title: string; children: ReactNode; action?: ReactNode }) {
  return (
    <Stack className="empty" align="center" gap="xs">
      <Title order={2}>{title}</Title>
      <Text c="dimmed" ta="center" maw={460} component="div">
        {children}
      </Text>
      {action !== undefined && <div>{action}</div>}
    </Stack>
  )
}

/** Shown in place of a list whose filters fit nothing. */
export function NothingFits({ title, onClear, children }: { title: string; onClear: () => void; children: ReactNode }) {
  return (
    <Empty
      title={title}
      action={
        <Button variant="default" onClick={onClear}>
          Clear the filters
        </Button>
      }
    >
      {children}
    </Empty>
  )
}
