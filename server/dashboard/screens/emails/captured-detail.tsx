import { Button, Group } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { saveFile } from '../../api/download.ts'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { ExactTime } from '../../components/time.tsx'
import { Attachments, sizeOf } from './attachments.tsx'
import { bytesOf } from './base64.ts'
import type { Message } from './message.ts'
import { MessageContent } from './message-content.tsx'

type Captured = Result<'GET /v1/captured-messages/:id'>

/** Bytes of a source that are shown. More would make the screen slow. */
const shownBytes = 999_999
/** Recipients that are named. */
const shownRecipients = 50

/** One captured message: what would have been sent, as it would have left. */
export function CapturedDetail() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet('GET /v1/captured-messages/:id', { params: { id } })
  const { can } = useScope()
  const { data: message } = query
  return (
    <Screen
      title={message === undefined ? 'Captured message' : (message.subject ?? '(no subject)')}
      parent={{ label: 'Captured', path: '/captured' }}
      action={message !== undefined && can('emails:send') && <DeleteMessage id={message.id} />}
    >
      <Loaded query={query} what="captured message">
        {(read) => <Details message={read} />}
      </Loaded>
    </Screen>
  )
}

function Details({ message: captured }: { message: Captured }) {
  const { recipients, emailId, attachments } = captured
  const message: Message = { ...captured, fileOperation: 'GET /v1/captured-messages/:id/attachments/:index' }
  return (
    <>
      <Facts
        of={[
          ['From', captured.from ?? '–'],
          ['Handed over for', recipientsOf(recipients)],
          ['Return path', captured.mailFrom === '' ? '–' : captured.mailFrom],
          ['Captured', <ExactTime key="at" at={captured.createdAt} />],
          ['Size', sizeOf(captured)],
          [
            'Email',
            emailId === null ? (
              'None: another program sent it, or the service to a person'
            ) : (
              <ScreenLink key="email" to={`/emails/${emailId}`}>
                Its recipients and timeline
              </ScreenLink>
            ),
          ],
          ['ID', <Copyable key="id" label="Copy the ID" value={captured.id} />],
        ]}
      />
      <Section title="Content">
        <MessageContent
          key={captured.id}
          message={message}
          more={[
            { label: 'Headers', show: () => <Headers headers={captured.headers} /> },
            { label: 'Source', show: () => <Source message={captured} /> },
          ]}
        />
      </Section>
      {attachments.length > 0 && (
        <Section title="Files">
          <Attachments message={message} />
        </Section>
      )}
    </>
  )
}

function recipientsOf(recipients: readonly string[]): string {
  const others = recipients.length - shownRecipients
  return `${recipients.slice(0, shownRecipients).join(', ')}${others > 0 ? ` and ${others} more` : ''}`
}

function Headers({ headers }: Pick<Captured, 'headers'>) {
  // As text, since a name can come many times.
  return <CodeBlock isWide>{headers.map(({ name, value }) => `${name}: ${value}`).join('\n')}</CodeBlock>
}

function Source({ message: { id, source } }: { message: Captured }) {
  // Four characters are three bytes, so that the cut falls between two bytes.
  const shown = new TextDecoder().decode(bytesOf(source.slice(0, (shownBytes / 3) * 4)))
  const isCut = source.length > (shownBytes / 3) * 4
  return (
    <>
      <Button
        size="xs"
        variant="default"
        leftSection={<IconDownload size={14} aria-hidden />}
        onClick={() => saveFile(`${id}.eml`, bytesOf(source))}
      >
        Download the source
      </Button>
      <CodeBlock isWide>{isCut ? `${shown}\n… (the rest is in the file)` : shown}</CodeBlock>
    </>
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
