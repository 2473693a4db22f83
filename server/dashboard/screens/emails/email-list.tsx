import { Button, Code, Text } from '@mantine/core'
import { IconSend } from '@tabler/icons-react'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { type RowOf, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty, NothingFits } from '../../components/empty.tsx'
import { Filters } from '../../components/filter-bar.tsx'
import { DayFilter, SelectFilter, TextFilter } from '../../components/filter-inputs.tsx'
import { useFilters } from '../../components/filters.ts'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State, wordOf } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
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

const filterNames = ['status', 'recipient', 'tag', 'since', 'until'] as const

/** The emails of this mode, newest first. */
export function EmailList() {
  const { mode, can } = useScope()
  const filters = useFilters(filterNames)
  const { values, clear, isSet } = filters
  const [isSending, setSending] = useState(false)
  const { since, until, status, ...rest } = values
  const list = useList('GET /v1/emails', {
    query: {
      ...rest,
      ...(status !== undefined && { status: status as Status }),
      ...(since !== undefined && { since: startOfDay(since) }),
      ...(until !== undefined && { until: startOfDay(until, 1) }),
    },
  })
  const send = (variant: 'filled' | 'default') =>
    can('emails:send') && (
      <Button variant={variant} leftSection={<IconSend size={16} aria-hidden />} onClick={() => setSending(true)}>
        Send an email
      </Button>
    )
  return (
    <Screen title="Emails" subtitle="What was sent, and what became of it." action={send('filled')}>
      <Filters isSet={isSet}>
        <SelectFilter filters={filters} name="status" label="State" options={statusOptions} />
        <TextFilter filters={filters} name="recipient" label="Recipient" isWide placeholder="ada@example.org" />
        <TextFilter filters={filters} name="tag" label="Tag" />
        <DayFilter filters={filters} name="since" label="From day" />
        <DayFilter filters={filters} name="until" label="To day" />
        {isSet && (
          <Button size="xs" variant="subtle" color="gray" onClick={clear}>
            Clear
          </Button>
        )}
      </Filters>
      <DataTable
        label="Emails"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          isSet ? (
            <NothingFits title="No email fits these filters" onClear={clear}>
              Recipient and tag are compared as a whole. Emails of the other mode are not searched.
            </NothingFits>
          ) : (
            <Empty title={`No emails in ${mode} mode yet`} action={send('default')}>
              <Text>
                Send one with an API key: <Code>POST /v1/emails</Code>. It stands here a moment later.
              </Text>
            </Empty>
          )
        }
      />
      {isSending && <SendEmail onClose={() => setSending(false)} />}
    </Screen>
  )
}

/** Returns the start of a day, or of `later` days after it, in the reader's zone. */
function startOfDay(day: string, later = 0): string | undefined {
  const start = new Date(`${day}T00:00:00`)
  start.setDate(start.getDate() + later)
  return Number.isNaN(start.getTime()) ? undefined : start.toISOString()
}
