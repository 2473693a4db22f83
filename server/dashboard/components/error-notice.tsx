import { Alert, Button, Group, Text } from '@mantine/core'
import { IconAlertTriangle } from '@tabler/icons-react'
import type { ApiError } from '../api/client.ts'

/** An error of the API: its message, and a button to try again where `onRetry` is set. */
export function ErrorNotice({ error, onRetry }: { error: ApiError; onRetry?: () => void }) {
  return (
    <Alert
      color="red"
      variant="outline"
      icon={<IconAlertTriangle size={18} aria-hidden />}
      role="alert"
      className="notice"
    >
      <Text>{error.message}</Text>
      {error.requestId !== null && error.status >= 500 && (
        <Text fz="xs" c="dimmed" mt={4}>
          Request {error.requestId}
        </Text>
      )}
      {onRetry && (
        <Group mt="sm">
          <Button size="xs" variant="default" onClick={onRetry}>
            Try again
          </Button>
        </Group>
      )}
    </Alert>
  )
}
