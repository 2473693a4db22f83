import { Button } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { type RowOf, useChange, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { capturesEmail } from '../../captures-email.ts'
import { Confirm } from '../../components/confirm.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { TextFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { OnlyLive } from '../../components/only-live.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { Time } from '../../components/time.tsx'
import { senderOf, subjectOf } from './message-heading.ts'
import { SendEmail } from './send-email.tsx'

type Captured = RowOf<'GET /v1/captured-messages'>

const columns: readonly Column<Captured>[] = [
  {
    header: 'To',
    cell: ({ id, recipients }) => (
      <ScreenLink to={`/captured/${id}`} title={recipients.slice(0, 20).join(', ')}>
        {recipients[0] ?? '(nobody)'}
        {recipients.length > 1 && <span className="dimmed"> +{recipients.length - 1}</span>}
      </ScreenLink>
    ),
    phoneLine: subjectOf,
  },
  {
    header: 'Subject',
    isMinor: true,
    cell: (message) => <span title={subjectOf(message)}>{subjectOf(message)}</span>,
  },
  { header: 'From', isMinor: true, cell: (message) => <span title={senderOf(message)}>{senderOf(message)}</span> },
  {
    header: 'Captured',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

/** Milliseconds between two looks for new messages. */
const pollMs = 3_000

/** The messages that were captured instead of sent, newest first. New messages appear by themselves. */
export function CapturedList() {
  const { mode, can } = useScope()
  const [isDeleting, setDeleting] = useState(false)
  const action = mode === 'live' && can('emails:send') && (
    <Button variant="default" onClick={() => setDeleting(true)}>
      Delete all
    </Button>
  )
  return (
    <Screen
      title="Captured"
      subtitle="Email that was kept here instead of being sent, as it would have left."
      action={action}
    >
      {mode === 'live' ? (
        <LiveList />
      ) : (
        <OnlyLive title="Nothing is captured in test mode" path="/captured">
          Test mode checks emails and sends none. Send with a live key: no email leaves this machine.
        </OnlyLive>
      )}
      {isDeleting && <DeleteAll onClose={() => setDeleting(false)} />}
    </Screen>
  )
}

function LiveList() {
  const { can } = useScope()
  const filters = useFilters(['search', 'email'])
  const { search, email: emailId } = filters.values
  const [isSending, setSending] = useState(false)
  const list = useList(
    'GET /v1/captured-messages',
    { query: given({ search, emailId }) },
    { pollMs: search === undefined ? pollMs : undefined },
  )
  return (
    <>
      <FilteredList
        filters={filters}
        inputs={
          <>
            <TextFilter filters={filters} name="search" label="Search" isWide placeholder="Subject, address or ID" />
            <TextFilter filters={filters} name="email" label="Email ID" isWide />
          </>
        }
        label="Captured messages"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        nothingFits={{
          title: 'No captured message fits these filters',
          hint: 'The search looks for the text anywhere in subjects, senders, recipients and IDs. The newest 1,000 are kept, for as long as emails are.',
        }}
        empty={<NothingCaptured action={can('emails:send') && <SendButton onClick={() => setSending(true)} />} />}
      />
      {isSending && <SendEmail onClose={() => setSending(false)} />}
    </>
  )
}

function SendButton({ onClick }: { onClick: () => void }) {
  return <Button onClick={onClick}>Send an email</Button>
}

function NothingCaptured({ action }: { action: ReactNode }) {
  if (!capturesEmail()) {
    return (
      <Empty title="Nothing is captured here">
        This service really sends its email. With <code>MAIL_TRANSPORT=capture</code> it is kept and shown here instead.
      </Empty>
    )
  }
  return (
    <Empty title="Nothing is captured yet" action={action}>
      Send an email with a live key, or here. It stands here a moment later, and has not left this machine.
    </Empty>
  )
}

function DeleteAll({ onClose }: { onClose: () => void }) {
  const remove = useChange('DELETE /v1/captured-messages')
  return (
    <Confirm
      title="Delete all captured messages?"
      action="Delete all"
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({}, { onSuccess: onClose })}
    >
      What was captured in live mode cannot be shown again. The emails and their timelines stay.
    </Confirm>
  )
}
