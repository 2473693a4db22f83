import { type RowOf, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Section } from '../../components/facts.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'

const columns: readonly Column<RowOf<'GET /v1/emails'>>[] = [
  { header: 'Subject', cell: ({ id, subject }) => <ScreenLink to={`/emails/${id}`}>{subject}</ScreenLink> },
  { header: 'State', width: '120px', cell: ({ status }) => <State of={status} /> },
  { header: 'From', isMinor: true, cell: ({ from }) => <span title={from}>{from}</span> },
  {
    header: 'Accepted',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

/** The emails of this mode to one address, newest first. */
export function SubscriberEmails({ address }: { address: string }) {
  const { mode } = useScope()
  const list = useList('GET /v1/emails', { query: { recipient: address } })
  return (
    <Section title="Emails">
      <DataTable
        label="Emails"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title={`No emails to this address in ${mode} mode`}>
            What is sent to it from now on stands here. Emails older than the service keeps them are not shown.
          </Empty>
        }
      />
    </Section>
  )
}
