import { Button } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import type { Result } from '../../api/client.ts'
import { saveFile } from '../../api/download.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { sizeOf } from '../../components/size.ts'
import { ExactTime } from '../../components/time.tsx'
import { Attachments } from './attachments.tsx'
import { bytesOf } from './base64.ts'
import type { FileOperation, Message } from './message.ts'
import { MessageContent } from './message-content.tsx'
import { senderOf } from './message-heading.ts'

/** The fields that captured and inbound messages have in common. */
type Stored = Result<'GET /v1/captured-messages/:id'> | Result<'GET /v1/inbound-messages/:id'>

/** Bytes of a source that are shown. More would make the screen slow. */
const shownBytes = 999_999
/** Recipients that are named. */
const shownRecipients = 50

type Props = {
  message: Stored
  /** Reads one of its files. Null: they are only in its source. */
  fileOperation: FileOperation | null
  /** The names of its facts. */
  words: {
    recipients: string
    sender: string
    time: string
    /** Shown in place of the email where the message is of none. */
    noEmail: string
  }
  /** Facts that stand before the others. Default: none. */
  first?: readonly (readonly [name: string, value: ReactNode])[]
  /** Said of its size. Default: nothing. */
  ofSize?: string | null
}

/** A message that the service kept: from whom and for whom, what is in it, and its source. */
export function StoredMessage({ message: stored, fileOperation, words, first = [], ofSize = null }: Props) {
  const { emailId } = stored
  const message: Message = { ...stored, fileOperation }
  return (
    <>
      <Facts
        of={[
          ...first,
          ['From', senderOf(stored)],
          [words.recipients, recipientsOf(stored.recipients)],
          [words.sender, stored.mailFrom === '' ? '–' : stored.mailFrom],
          [words.time, <ExactTime key="at" at={stored.createdAt} />],
          ['Size', ofSize === null ? sizeOf(stored) : `${sizeOf(stored)}. ${ofSize}`],
          [
            'Email',
            emailId === null ? (
              words.noEmail
            ) : (
              <ScreenLink key="email" to={`/emails/${emailId}`}>
                Its recipients and timeline
              </ScreenLink>
            ),
          ],
          ['ID', <Copyable key="id" label="Copy the ID" value={stored.id} />],
        ]}
      />
      <Section title="Content">
        <MessageContent
          key={stored.id}
          message={message}
          more={[
            { label: 'Headers', show: () => <Headers headers={stored.headers} /> },
            { label: 'Source', show: () => <Source message={stored} /> },
          ]}
        />
      </Section>
      {stored.attachments.length > 0 && (
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

function Headers({ headers }: Pick<Stored, 'headers'>) {
  // As text, since a name can come many times.
  return <CodeBlock isWide>{headers.map(({ name, value }) => `${name}: ${value}`).join('\n')}</CodeBlock>
}

function Source({ message: { id, source } }: { message: Stored }) {
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
