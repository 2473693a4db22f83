import { Alert, Button, Text } from '@mantine/core'
import { useState } from 'react'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Time } from '../../components/time.tsx'
import { RemoveSuppression, SuppressionSource, suppressionReasons } from './suppression.tsx'

/** Says that an address is suppressed, why and since when. Shows nothing for an address that is not. */
export function SuppressionNotice({ address }: { address: string }) {
  const { can } = useScope()
  const { data, error } = useGet('GET /v1/suppressions', { query: { address } })
  const [isRemoving, setRemoving] = useState(false)
  // The API refuses to look for an address that no email can be sent to.
  if (error !== null && error.status !== 422) return <ErrorNotice error={error} />
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
