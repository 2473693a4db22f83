import { Button, Code, NativeSelect, Text, TextInput } from '@mantine/core'
import { IconSend } from '@tabler/icons-react'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { type RowOf, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Filters } from '../../components/filter-bar.tsx'
import { useFilters } from '../../components/filters.ts'
import { LateInput } from '../../components/late-input.tsx'
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

const statusOptions = [
  { value: '', label: 'All' },
  ...Object.keys(statuses).map((value) => ({ value, label: wordOf(value) })),
]

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
  const { values, set, clear, isSet } = useFilters(filterNames)
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
        <NativeSelect
          size="xs"
          label="State"
          data={statusOptions}
          value={values.status ?? ''}
          onChange={(event) => set('status', event.currentTarget.value)}
        />
        <LateInput
          size="xs"
          className="wide"
          label="Recipient"
          placeholder="ada@example.org"
          value={values.recipient ?? ''}
          onCommit={(value) => set('recipient', value)}
        />
        <LateInput size="xs" label="Tag" value={values.tag ?? ''} onCommit={(value) => set('tag', value)} />
        <TextInput
          size="xs"
          label="From day"
          type="date"
          value={values.since ?? ''}
          onChange={(event) => set('since', event.currentTarget.value)}
        />
        <TextInput
          size="xs"
          label="To day"
          type="date"
          value={values.until ?? ''}
          onChange={(event) => set('until', event.currentTarget.value)}
        />
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
            <Empty
              title="No email fits these filters"
              action={
                <Button variant="default" onClick={clear}>
                  Clear the filters
                </Button>
              }
            >
              Recipient and tag are compared as a whole. Emails of the other mode are not searched.
            </Empty>
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
