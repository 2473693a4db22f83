import { Button, Group } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { capturesEmail } from '../../captures-email.ts'
import { Copyable } from '../../components/copyable.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { ExactTime, Time } from '../../components/time.tsx'
import { unread } from '../../components/unread.tsx'
import { Attachments } from './attachments.tsx'
import { CancelEmail } from './cancel-email.tsx'
import type { EmailDetails } from './email.ts'
import { EmailContent } from './email-content.tsx'
import type { Message } from './message.ts'
import { Recipients } from './recipients.tsx'
import { RescheduleEmail } from './reschedule-email.tsx'
import { ResendEmail } from './resend-email.tsx'
import { Timeline } from './timeline.tsx'

const pollMs = 3_000

/** One email: whether it arrived, why not, and what is in it. */
export function EmailDetail() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet(
    'GET /v1/emails/:id',
    { params: { id } },
    // Until nothing is left to be done.
    { pollMs: (email) => (email !== undefined && email.completedAt === null ? pollMs : false) },
  )
  const { can } = useScope()
  const { data: email } = query
  return (
    <Screen
      title={email?.subject ?? 'Email'}
      parent={{ label: 'Emails', path: '/emails' }}
      subtitle={email && <State of={email.status} />}
      // By its id, since sending again leads to the screen of another.
      action={email !== undefined && can('emails:send') && <EmailAction key={email.id} email={email} />}
    >
      <Loaded query={query} what="email">
        {(read) => <Details email={read} />}
      </Loaded>
    </Screen>
  )
}

/** A dialog about an email that waits for its time. */
type Opened = { what: 'cancel' } | { what: 'reschedule'; scheduledAt: string }

/** The actions on an email. An open dialog stays when the sending begins: then the API says why it is too late. */
function EmailAction({ email }: { email: EmailDetails }) {
  const { id, status, scheduledAt, completedAt } = email
  const [opened, setOpened] = useState<Opened | null>(null)
  const close = () => setOpened(null)
  return (
    <>
      {status === 'scheduled' && scheduledAt !== null && (
        <Group gap="xs">
          <Button variant="default" onClick={() => setOpened({ what: 'cancel' })}>
            Cancel the email
          </Button>
          <Button variant="default" onClick={() => setOpened({ what: 'reschedule', scheduledAt })}>
            Change the time
          </Button>
        </Group>
      )}
      {completedAt !== null && <ResendEmail email={email} />}
      {opened?.what === 'cancel' && <CancelEmail id={id} onClose={close} />}
      {opened?.what === 'reschedule' && (
        <RescheduleEmail
          id={id}
          scheduledAt={opened.scheduledAt}
          current={status === 'scheduled' ? scheduledAt : null}
          onClose={close}
        />
      )}
    </>
  )
}

function Details({ email }: { email: EmailDetails }) {
  const { mode } = useScope()
  const metadata = Object.entries(email.metadata)
  const message: Message = { ...email, fileOperation: 'GET /v1/emails/:id/attachments/:index' }
  return (
    <>
      <Facts
        of={[
          ['From', email.from],
          ['To', email.to.join(', ')],
          ...(email.cc.length > 0 ? ([['Cc', email.cc.join(', ')]] as const) : []),
          ...(email.bcc.length > 0 ? ([['Bcc', email.bcc.join(', ')]] as const) : []),
          ...(email.replyTo.length > 0 ? ([['Reply to', email.replyTo.join(', ')]] as const) : []),
          ['Accepted', <ExactTime key="at" at={email.createdAt} />],
          ...(email.status === 'scheduled' && email.scheduledAt !== null
            ? ([['Scheduled for', <SentAt key="at" at={email.scheduledAt} />]] as const)
            : []),
          ...(email.tags.length > 0 ? ([['Tags', email.tags.join(', ')]] as const) : []),
          ...(metadata.length > 0
            ? ([['Metadata', metadata.map(([name, value]) => `${name}: ${value}`).join(', ')]] as const)
            : []),
          ...(capturesEmail() && mode === 'live'
            ? ([['Captured', <CapturedLink key="captured" id={email.id} />]] as const)
            : []),
          ['ID', <Copyable key="id" label="Copy the ID" value={email.id} />],
          ['Message-ID', <Copyable key="id" label="Copy the Message-ID" value={email.messageId} />],
        ]}
      />
      <Section title="Recipients">
        <Recipients recipients={email.recipients} />
      </Section>
      <Section title="Timeline" action={mode === 'live' && <InboundLink emailId={email.id} />}>
        <Timeline entries={email.timeline} />
      </Section>
      <Section title="Content">
        <EmailContent email={email} message={message} />
      </Section>
      {email.attachments.length > 0 && (
        <Section title="Files">
          <Attachments message={message} />
        </Section>
      )}
    </>
  )
}

/** When a scheduled email is sent: exact, so that a change of it is seen, and how far away that is. */
function SentAt({ at }: { at: string }) {
  return (
    <>
      <ExactTime at={at} />, <Time at={at} isAhead />
    </>
  )
}

function CapturedLink({ id }: { id: string }) {
  return (
    <ScreenLink to="/captured" search={{ email: id }}>
      What would have been sent
    </ScreenLink>
  )
}

/** Leads to what came back about an email and was not understood, where there is something. */
function InboundLink({ emailId }: { emailId: string }) {
  const query = useGet('GET /v1/inbound-messages', { query: { emailId, limit: 1 } })
  const { data: inbound } = query
  if (inbound === undefined) return unread(query, 'What came back')
  if (inbound.data.length === 0) return null
  return (
    <ScreenLink to="/inbound-messages" search={{ email: emailId }}>
      What came back and was not understood
    </ScreenLink>
  )
}
