import { Alert, Box, Button, Text } from '@mantine/core'
import { useState } from 'react'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Time } from '../../components/time.tsx'
import { RemoveSuppression, SuppressionSource, suppressionReasons } from './suppression.tsx'

/** Reads whether an address is suppressed, where it can be and the reader may see it. */
export function useSuppression(address: string) {
  const { can, mode } = useScope()
  const isShown = mode === 'live' && can('suppressions:read')
  return useGet('GET /v1/suppressions', { query: { address } }, { enabled: isShown })
}

/** Says that an address is suppressed, why and since when. Shows nothing for an address that is not. */
export function SuppressionNotice({ query }: { query: ReturnType<typeof useSuppression> }) {
  const { can } = useScope()
  const { data, error, refetch } = query
  const [isRemoving, setRemoving] = useState(false)
  // The API refuses to look for an address that no email can be sent to.
  if (data === undefined && error !== null && error.status !== 422) {
    return (
      <Box mb="lg">
        <ErrorNotice
          error={error}
          title="It could not be read whether the address is suppressed"
          onRetry={() => void refetch()}
        />
      </Box>
    )
  }
  const entry = data?.data[0]
  if (entry === undefined) return null
  return (
    <Alert
      color="gray"
      mb="lg"
      role="note"
      title={
        entry.reason === 'unsubscribe'
          ? 'Emails to audiences are not sent to this address'
          : 'This address is suppressed'
      }
    >
      <Text component="div">
        {suppressionReasons[entry.reason]}, <Time at={entry.createdAt} />. Learned from:{' '}
        <SuppressionSource of={entry} />.
      </Text>
      {can('suppressions:write') && (
        <Button size="xs" variant="default" mt="sm" onClick={() => setRemoving(true)}>
          Write to it again
        </Button>
      )}
      {isRemoving && <RemoveSuppression entry={entry} onClose={() => setRemoving(false)} />}
    </Alert>
  )
}
