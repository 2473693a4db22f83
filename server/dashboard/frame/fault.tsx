import { Anchor, Button, Stack, Text, Title } from '@mantine/core'
import { type ErrorComponentProps, Link } from '@tanstack/react-router'
import { ApiError } from '../api/client.ts'
import { Centered } from './centered.tsx'

/** Shown in place of a screen that cannot be shown. */
export function Fault({ error, reset }: ErrorComponentProps) {
  const requestId = error instanceof ApiError ? error.requestId : null
  return (
    <Centered>
      <Title order={1}>This screen cannot be shown</Title>
      <Text>{error instanceof Error ? error.message : 'Something failed.'}</Text>
      {requestId !== null && <Text c="dimmed">Request {requestId}</Text>}
      <Button onClick={reset}>Try again</Button>
    </Centered>
  )
}

export function NotFound() {
  return (
    <Centered>
      <Stack gap="xs">
        <Title order={1}>Nothing is here</Title>
        <Text>The address is mistyped, or what it named was deleted.</Text>
        <Anchor component={Link} to="/">
          Go to the start
        </Anchor>
      </Stack>
    </Centered>
  )
}
