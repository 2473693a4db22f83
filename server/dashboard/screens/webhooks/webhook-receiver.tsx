import { useParams } from '@tanstack/react-router'
import { useGet } from '../../api/hooks.ts'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ReceiverProgram } from './receiver-program.tsx'

/** A program that receives the events of a webhook, in one of five languages. */
export function WebhookReceiver() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet('GET /v1/webhooks/:id', { params: { id } })
  return (
    <Screen
      title="Receiver"
      subtitle="A program that checks signatures, refuses replays and handles each event once."
      parent={{ label: 'Webhook', path: `/webhooks/${id}` }}
    >
      <Loaded query={query} what="webhook">
        {({ url }) => <ReceiverProgram url={url} />}
      </Loaded>
    </Screen>
  )
}
