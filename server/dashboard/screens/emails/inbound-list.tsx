import { Code } from '@mantine/core'
import { type RowOf, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
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

type Inbound = RowOf<'GET /v1/inbound-messages'>

const columns: readonly Column<Inbound>[] = [
  {
    header: 'From',
    cell: (message) => (
      <ScreenLink to={`/inbound-messages/${message.id}`} title={senderOf(message)}>
        {senderOf(message)}
      </ScreenLink>
    ),
    phoneLine: subjectOf,
  },
  {
    header: 'Subject',
    width: '52%',
    isMinor: true,
    cell: (message) => (
      <>
        <span title={subjectOf(message)}>{subjectOf(message)}</span>
        <span className="second-line" title={message.reason}>
          {message.reason}
        </span>
      </>
    ),
  },
  {
    header: 'Received',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

/** Milliseconds between two looks for new messages. */
const pollMs = 3_000

/** The messages that came back and were not understood, newest first. New messages appear by themselves. */
export function InboundList() {
  const { mode } = useScope()
  return (
    <Screen title="Inbound" subtitle="Messages that came back to the return path of an email and were not understood.">
      {mode === 'live' ? (
        <LiveList />
      ) : (
        <OnlyLive title="Nothing comes back in test mode" path="/inbound-messages">
          Test mode checks emails and sends none.
        </OnlyLive>
      )}
    </Screen>
  )
}

function LiveList() {
  const filters = useFilters(['email'])
  const { email: emailId } = filters.values
  const list = useList('GET /v1/inbound-messages', { query: given({ emailId }) }, { pollMs })
  return (
    <FilteredList
      filters={filters}
      inputs={<TextFilter filters={filters} name="email" label="Email ID" isWide />}
      label="Inbound messages"
      list={list}
      columns={columns}
      keyOf={({ id }) => id}
      nothingFits={{
        title: 'No inbound messages of this email',
        hint: 'Messages that were understood are in its timeline. The newest 1,000 are kept, for as long as emails are.',
      }}
      empty={
        <Empty title="No inbound messages yet">
          Notifications that were understood, such as bounces, are in the timeline of their email. They arrive once{' '}
          <Code>INBOUND_SMTP_PORT</Code> is set and the MX records of the domains point to this service.
        </Empty>
      }
    />
  )
}
