import { Alert, Button, Group, Text } from '@mantine/core'
import { IconAlertTriangle } from '@tabler/icons-react'
import type { ApiError } from '../api/client.ts'

type Props = {
  error: ApiError
  /** What could not be read, where the place does not say it. */
  title?: string
  onRetry?: () => void
}

/** An error of the API: its message, and a button to try again where `onRetry` is set. */
export function ErrorNotice({ error, title, onRetry }: Props) {
  return (
    <Alert
      color="red"
      variant="outline"
      icon={<IconAlertTriangle size={18} aria-hidden />}
      role="alert"
      className="notice"
    >
      {title !== undefined && <Text fw={600}>{title}</Text>}
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
