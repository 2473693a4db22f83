import { Paper, Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import { Wordmark } from './mark.tsx'

/** The frame of screens outside of an account. */
export function Centered({ children }: { children: ReactNode }) {
  return (
    <main className="centered">
      <Wordmark />
      <Paper withBorder p="xl" radius="lg" w="100%" maw={420}>
        <Stack gap="md">{children}</Stack>
      </Paper>
    </main>
  )
}
