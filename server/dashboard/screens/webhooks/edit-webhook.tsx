import { useChange } from '../../api/hooks.ts'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import type { Webhook } from './webhook.ts'
import { WebhookFields, type WebhookValues } from './webhook-fields.tsx'

export function EditWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { id, url, events, description } = webhook
  const update = useChange('PATCH /v1/webhooks/:id')
  const { form, ...sending } = useApiForm<WebhookValues>({
    initial: { url, events, description: description ?? '' },
    check: (values) => (values.events.length === 0 ? { events: 'Choose at least one event' } : {}),
    send: async (values) => {
      const body = { ...values, description: values.description === '' ? null : values.description }
      await update.mutateAsync({ params: { id }, body })
      onClose()
    },
  })
  return (
    <FormDialog size="lg" title="Edit the webhook" action="Save" {...sending} onClose={onClose}>
      <WebhookFields form={form} />
    </FormDialog>
  )
}
