import { Alert, Button, Group, NativeSelect, Stack } from '@mantine/core'
import { useState } from 'react'
import { useChange } from '../../api/hooks.ts'
import { Dialog } from '../../components/dialog.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import type { Webhook } from './webhook.ts'

/** Sends a sample event, and tells how the endpoint took it. */
export function TestWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const test = useChange('POST /v1/webhooks/:id/test')
  const [type, setType] = useState(webhook.events[0])
  const { data: result } = test
  return (
    <Dialog onClose={onClose} title="Send a test event">
      <Stack>
        <NativeSelect
          label="Event"
          description="A sample of it is sent, signed like any other."
          data={webhook.events}
          value={type ?? ''}
          onChange={(event) => setType(webhook.events.find((known) => known === event.currentTarget.value))}
        />
        <div aria-live="polite">
          {test.error !== null && <ErrorNotice error={test.error} />}
          {result?.success === true && (
            <Alert color="green" variant="outline" title="The endpoint accepted it">
              It answered within {Math.round(result.responseTime ?? 0)} ms.
            </Alert>
          )}
          {result?.success === false && (
            <Alert color="red" variant="outline" title="The endpoint did not accept it">
              {result.error}
            </Alert>
          )}
        </div>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button
            loading={test.isPending}
            onClick={() => test.mutate({ params: { id: webhook.id }, body: type === undefined ? {} : { type } })}
          >
            Send it
          </Button>
        </Group>
      </Stack>
    </Dialog>
  )
}
