import { Button, Code, Text } from '@mantine/core'
import { IconSend } from '@tabler/icons-react'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { type RowOf, useChoices, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { DayFilter, SelectFilter, TextFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { startOfDay } from '../../components/local-time.ts'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State, wordOf } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { unread } from '../../components/unread.tsx'
import { SendEmail } from './send-email.tsx'

type Email = RowOf<'GET /v1/emails'>
type Status = Result<'GET /v1/emails'>['data'][number]['status']

/** All states, in the order in which an email comes through them. */
const statuses: Readonly<Record<Status, true>> = {
  validated: true,
  scheduled: true,
  queued: true,
  sending: true,
  sent: true,
  delivered: true,
  bounced: true,
  failed: true,
  suppressed: true,
  canceled: true,
}

const statusOptions = Object.keys(statuses).map((value) => ({ value, label: wordOf(value) }))

const columns: readonly Column<Email>[] = [
  {
    header: 'To',
    cell: ({ id, to, cc, bcc }) => {
      const others = to.length + cc.length + bcc.length - 1
      return (
        <ScreenLink to={`/emails/${id}`} title={to.join(', ')}>
          {to[0] ?? cc[0] ?? bcc[0]}
          {others > 0 && <span className="dimmed"> +{others}</span>}
        </ScreenLink>
      )
    },
    phoneLine: ({ subject }) => subject,
  },
  { header: 'State', width: '120px', cell: ({ status }) => <State of={status} /> },
  { header: 'Subject', isMinor: true, cell: ({ subject }) => <span title={subject}>{subject}</span> },
  { header: 'From', isMinor: true, cell: ({ from }) => <span title={from}>{from}</span> },
  {
    header: 'Accepted',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

const filterNames = ['search', 'status', 'domain', 'tag', 'metadata', 'since', 'until'] as const

/** Milliseconds between two looks for new emails. */
const pollMs = 3_000

/** The emails of this mode, newest first. New ones come in by themselves. */
export function EmailList() {
  const { mode, can } = useScope()
  const filters = useFilters(filterNames)
  const [isSending, setSending] = useState(false)
  const { search, status, domain, tag, metadata, since, until } = filters.values
  const list = useList(
    'GET /v1/emails',
    {
      query: given({
        search,
        status: status as Status | undefined,
        domain,
        tag,
        metadata: metadata === undefined ? undefined : pairOf(metadata),
        since: startOfDay(since),
        until: startOfDay(until, 1),
      }),
    },
    { pollMs: search === undefined ? pollMs : undefined },
  )
  const domains = useChoices('GET /v1/domains', { query: {} }, { enabled: can('domains:read') })
  const send = (variant: 'filled' | 'default') =>
    can('emails:send') && (
      <Button variant={variant} leftSection={<IconSend size={16} aria-hidden />} onClick={() => setSending(true)}>
        Send an email
      </Button>
    )
  return (
    <Screen title="Emails" subtitle="What was sent, and what became of it." action={send('filled')}>
      <FilteredList
        filters={filters}
        inputs={
          <>
            <TextFilter filters={filters} name="search" label="Search" isWide placeholder="Recipient, subject or ID" />
            <SelectFilter filters={filters} name="status" label="State" options={statusOptions} />
            {can('domains:read') && (
              <SelectFilter
                filters={filters}
                name="domain"
                label="Domain"
                options={domains.data?.map(({ id, name }) => ({ value: id, label: name })) ?? []}
              />
            )}
            <TextFilter filters={filters} name="tag" label="Tag" />
            <TextFilter filters={filters} name="metadata" label="Metadata" isExact placeholder="name=value" />
            <DayFilter filters={filters} name="since" label="From day" />
            <DayFilter filters={filters} name="until" label="To day" />
          </>
        }
        unreadOptions={unread(domains, 'The domains')}
        label="Emails"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        nothingFits={{
          title: 'No email fits these filters',
          hint: 'The search compares how addresses, subjects and IDs begin; tag and metadata are compared as a whole. Emails of the other mode are not searched.',
        }}
        empty={
          <Empty title={`No emails in ${mode} mode yet`} action={send('default')}>
            <Text>
              Send one with an API key: <Code>POST /v1/emails</Code>. It stands here a moment later.
            </Text>
          </Empty>
        }
      />
      {isSending && <SendEmail onClose={() => setSending(false)} />}
    </Screen>
  )
}

/** Reads `name=value`. Without a value, the name has an empty one. */
function pairOf(text: string): Record<string, string> {
  const at = text.indexOf('=')
  return at === -1 ? { [text]: '' } : { [text.slice(0, at).trim()]: text.slice(at + 1).trim() }
}
