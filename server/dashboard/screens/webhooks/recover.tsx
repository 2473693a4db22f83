import { Alert, Button, Group, Progress, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { type RowOf, useChange, useGet } from '../../api/hooks.ts'
import { Dialog } from '../../components/dialog.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { localTime, momentOf, timeFault } from '../../components/local-time.ts'
import { useApiForm } from '../../components/use-api-form.ts'
import { ZonedTimeInput } from '../../components/zoned-time-input.tsx'
import { countOf } from '../overview/format.ts'
import type { Webhook } from './webhook.ts'

const dayMs = 86_400_000

/** Sends again what a webhook has missed since a time, and shows how far that is. */
export function Recover({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const start = useChange('POST /v1/webhooks/:id/recover')
  const [recoveryId, setRecoveryId] = useState<string | null>(null)
  const [dayAgo] = useState(() => new Date(Date.now() - dayMs).toISOString())
  const { form, error, isRunning, submit } = useApiForm({
    initial: { since: localTime(new Date(dayAgo)) },
    check: ({ since }) => ({ since: timeFault(since, dayAgo) }),
    send: async ({ since }) => {
      const body = { since: momentOf(since, dayAgo) ?? since }
      const { id } = await start.mutateAsync({ params: { id: webhook.id }, body })
      setRecoveryId(id)
    },
  })
  return (
    <Dialog onClose={onClose} title="Send again what it missed">
      {recoveryId !== null ? (
        <RecoveryProgress webhookId={webhook.id} recoveryId={recoveryId} onClose={onClose} />
      ) : (
        <form onSubmit={submit}>
          <Stack>
            {error !== null && <ErrorNotice error={error} />}
            <Text>
              Sends the events since this time that the webhook did not get: those that failed, were canceled, or came
              while it was disabled.
            </Text>
            <ZonedTimeInput label="Since" data-autofocus initial={dayAgo} {...form.getInputProps('since')} />
            <Group justify="flex-end">
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button type="submit" loading={isRunning}>
                Send them
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Dialog>
  )
}

function completedText(count: number): string {
  if (count === 0) return 'It has missed nothing since then.'
  return count === 1 ? 'The event that it missed is on its way.' : `All ${countOf(count)} are on their way.`
}

type Counts = Pick<RowOf<'GET /v1/webhooks/:id/recoveries'>, 'status' | 'done' | 'count' | 'countIsExact'>

function progressText({ status, done, count, countIsExact }: Counts): string {
  if (status === 'completed') return completedText(count)
  if (status === 'running' && count === 0) return 'Counting …'
  return `${countOf(done)} of ${countIsExact ? '' : 'at least '}${countOf(count)} are on their way.`
}

type ProgressProps = { webhookId: string; recoveryId: string; onClose: () => void }

const pollMs = 1_000

function RecoveryProgress({ webhookId, recoveryId, onClose }: ProgressProps) {
  const { data, error } = useGet(
    'GET /v1/webhooks/:id/recoveries/:recoveryId',
    { params: { id: webhookId, recoveryId } },
    { pollMs: (recovery) => (recovery?.status === 'running' || recovery === undefined ? pollMs : false) },
  )
  const { done = 0, count = 0, countIsExact = false, status = 'running' } = data ?? {}
  return (
    <Stack>
      {error !== null && <ErrorNotice error={error} />}
      {status === 'canceled' && <Alert color="yellow">It was stopped, because the webhook was disabled.</Alert>}
      <Progress
        value={status === 'completed' ? 100 : (100 * done) / Math.max(count, 1)}
        aria-label="Deliveries put on their way"
      />
      <Text aria-live="polite">{progressText({ status, done, count, countIsExact })}</Text>
      <Group justify="flex-end">
        <Button onClick={onClose}>Close</Button>
      </Group>
    </Stack>
  )
}
