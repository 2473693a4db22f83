import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import type { Webhook } from './webhook.ts'
import { faultsOf, metadataOf, WebhookFields, type WebhookValues } from './webhook-fields.tsx'

export function EditWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { portal } = useScope()
  const { id, url, events, description } = webhook
  const metadata = Object.entries(webhook.metadata).map(([name, value]) => ({ name, value }))
  const update = useChange('PATCH /v1/webhooks/:id')
  const { form, ...sending } = useApiForm<WebhookValues>({
    initial: { url, events, description: description ?? '', metadata },
    check: faultsOf,
    send: async (values) => {
      const body = {
        url: values.url,
        events: values.events,
        description: values.description === '' ? null : values.description,
        // A customer in the portal cannot see it.
        ...(portal === null && { metadata: metadataOf(values) }),
      }
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
