import { Button, Group } from '@mantine/core'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { subjectOf } from './message-heading.ts'
import { StoredMessage } from './stored-message.tsx'

const words = {
  recipients: 'Handed over for',
  sender: 'Return path',
  time: 'Captured',
  noEmail: 'None: another program sent it, or the service to a person',
}

/** One captured message: what would have been sent, as it would have left. */
export function CapturedDetail() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet('GET /v1/captured-messages/:id', { params: { id } })
  const { can } = useScope()
  const { data: message } = query
  return (
    <Screen
      title={message === undefined ? 'Captured message' : subjectOf(message)}
      parent={{ label: 'Captured', path: '/captured' }}
      action={message !== undefined && can('emails:send') && <DeleteMessage id={message.id} />}
    >
      <Loaded query={query} what="captured message">
        {(read) => (
          <StoredMessage
            message={read}
            fileOperation="GET /v1/captured-messages/:id/attachments/:index"
            words={words}
          />
        )}
      </Loaded>
    </Screen>
  )
}

function DeleteMessage({ id }: { id: string }) {
  const { path } = useScope()
  const navigate = useNavigate()
  const remove = useChange('DELETE /v1/captured-messages/:id')
  const [isAsked, setAsked] = useState(false)
  return (
    <Group>
      <Button variant="default" onClick={() => setAsked(true)}>
        Delete
      </Button>
      {isAsked && (
        <Confirm
          title="Delete this captured message?"
          action="Delete the message"
          isRunning={remove.isPending}
          error={remove.error}
          onClose={() => setAsked(false)}
          onConfirm={() =>
            remove.mutate(
              { params: { id } },
              { onSuccess: () => void navigate({ to: path('/captured'), replace: true }) },
            )
          }
        >
          It cannot be shown again. The email that it is of stays, with its timeline.
        </Confirm>
      )}
    </Group>
  )
}
