import { Button, Group, Stack } from '@mantine/core'
import { useChange } from '../../api/hooks.ts'
import { Dialog } from '../../components/dialog.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import type { Webhook } from './webhook.ts'
import { WebhookFields, type WebhookValues } from './webhook-fields.tsx'

export function EditWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { id, url, events, description } = webhook
  const update = useChange('PATCH /v1/webhooks/:id')
  const { form, error, isRunning, submit } = useApiForm<WebhookValues>({
    initial: { url, events, description: description ?? '' },
    check: (values) => (values.events.length === 0 ? { events: 'Choose at least one event' } : {}),
    send: async (values) => {
      const body = { ...values, description: values.description === '' ? null : values.description }
      await update.mutateAsync({ params: { id }, body })
      onClose()
    },
  })
  return (
    <Dialog size="lg" onClose={onClose} title="Edit the webhook">
      <form onSubmit={submit}>
        <Stack>
          {error !== null && <ErrorNotice error={error} />}
          <WebhookFields form={form} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isRunning}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}
