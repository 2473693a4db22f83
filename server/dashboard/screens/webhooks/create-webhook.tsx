import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { NewSecret } from './new-secret.tsx'
import { faultsOf, metadataOf, WebhookFields, type WebhookValues } from './webhook-fields.tsx'

/** Asks for URL and events, then shows the secret once. */
export function CreateWebhook({ onClose }: { onClose: () => void }) {
  const { path } = useScope()
  const navigate = useNavigate()
  const create = useChange('POST /v1/webhooks')
  const [created, setCreated] = useState<Result<'POST /v1/webhooks'> | null>(null)
  const { form, ...sending } = useApiForm<WebhookValues>({
    initial: { url: '', events: [], description: '', metadata: [] },
    check: faultsOf,
    send: async (values) => {
      const { url, events, description, metadata } = values
      const body = {
        url,
        events,
        ...(description !== '' && { description }),
        ...(metadata.length > 0 && { metadata: metadataOf(values) }),
      }
      setCreated(await create.mutateAsync({ body }))
    },
  })
  if (created !== null) {
    const finish = () => {
      onClose()
      void navigate({ to: path(`/webhooks/${created.id}`) })
    }
    return <NewSecret secret={created.secret} onClose={finish} />
  }
  return (
    <FormDialog size="lg" title="Add a webhook" action="Add webhook" {...sending} onClose={onClose}>
      <WebhookFields form={form} />
    </FormDialog>
  )
}
