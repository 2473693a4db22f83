import { type RowOf, useList } from '../../api/hooks.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Screen } from '../../components/screen.tsx'
import { wordOf } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'

type Entry = RowOf<'GET /v1/audit-log'>

function detailsOf({ details }: Entry): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}

const columns: readonly Column<Entry>[] = [
  { header: 'When', width: '120px', cell: ({ at }) => <Time at={at} /> },
  {
    header: 'Who',
    cell: ({ actor }) => (
      <>
        {actor.name ?? actor.id ?? wordOf(actor.type)}
        <span className="second-line">{wordOf(actor.type)}</span>
      </>
    ),
  },
  { header: 'What', cell: ({ action }) => wordOf(action.replace('.', ' ')) },
  {
    header: 'Of',
    isMinor: true,
    cell: ({ target }) => <span title={target.id ?? undefined}>{target.name ?? target.id}</span>,
  },
  { header: 'From', width: '140px', isMinor: true, cell: ({ ipAddress }) => <span className="mono">{ipAddress}</span> },
  { header: 'Details', isMinor: true, cell: (entry) => <span title={detailsOf(entry)}>{detailsOf(entry)}</span> },
]

/** Who changed what, when and from where. */
export function AuditLog() {
  const list = useList('GET /v1/audit-log', {})
  return (
    <Screen title="Audit log" subtitle="Who changed what, when and from where. Entries are kept for 400 days.">
      <DataTable
        label="Audit log"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={<Empty title="Nothing yet">Changes of keys, members, webhooks and domains are listed here.</Empty>}
      />
    </Screen>
  )
}
