import { useParams } from '@tanstack/react-router'
import { keptInboundBytes } from '../../../../contract/inbound-limits.ts'
import { useGet } from '../../api/hooks.ts'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { subjectOf } from './message-heading.ts'
import { StoredMessage } from './stored-message.tsx'

const words = { recipients: 'Recipients', sender: 'Envelope sender', time: 'Received', noEmail: 'Unknown' }

/** One inbound message: why it was not understood, which email it is about, and what is in it. */
export function InboundDetail() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet('GET /v1/inbound-messages/:id', { params: { id } })
  const { data: message } = query
  return (
    <Screen
      title={message === undefined ? 'Inbound message' : subjectOf(message)}
      parent={{ label: 'Inbound', path: '/inbound-messages' }}
    >
      <Loaded query={query} what="inbound message">
        {(read) => (
          <StoredMessage
            message={read}
            fileOperation={null}
            words={words}
            ofSize={read.size < keptInboundBytes ? null : 'Only the first MiB was kept.'}
            first={[['Reason', <strong key="reason">{read.reason}</strong>]]}
          />
        )}
      </Loaded>
    </Screen>
  )
}
