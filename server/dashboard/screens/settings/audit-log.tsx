import { type RowOf, useList } from '../../api/hooks.ts'
import { ScopeProvider, useScope } from '../../api/scope.tsx'
import { Copyable } from '../../components/copyable.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { DayFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { startOfDay } from '../../components/local-time.ts'
import { Screen } from '../../components/screen.tsx'
import { wordOf } from '../../components/state.tsx'
import { ExactTime, Time } from '../../components/time.tsx'

type Entry = RowOf<'GET /v1/audit-log'>

function detailsOf({ details }: Entry): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ')
}

const actorLabels = { key: 'API key', user: 'User', portal_session: 'Customer in the portal' } as const

function Target({ of: { id, name } }: { of: Entry['target'] }) {
  return (
    <>
      {name}
      <span className="second-line">
        <Copyable label="Copy the ID" value={id} wraps />
      </span>
    </>
  )
}

const columns: readonly Column<Entry>[] = [
  { header: 'When', width: '11%', isMinor: true, cell: ({ at }) => <Time at={at} /> },
  {
    header: 'Who',
    cell: ({ actor }) => (
      <>
        {actor.type === 'command_line' ? 'Command line' : actor.name}
        {actor.type !== 'command_line' && <span className="second-line">{actorLabels[actor.type]}</span>}
      </>
    ),
    phoneLine: ({ at, ipAddress }) => (
      <>
        {ipAddress !== null && <span className="second-line">from {ipAddress}</span>}
        <ExactTime at={at} />
      </>
    ),
  },
  {
    header: 'What',
    cell: ({ action }) => wordOf(action.replace('.', ' ')),
    phoneLine: (entry) => (
      <>
        <Target of={entry.target} />
        {detailsOf(entry)}
      </>
    ),
  },
  { header: 'Of', width: '22%', isMinor: true, cell: ({ target }) => <Target of={target} /> },
  { header: 'From', width: '13%', isMinor: true, cell: ({ ipAddress }) => <span className="mono">{ipAddress}</span> },
  { header: 'Details', width: '20%', isMinor: true, cell: detailsOf },
]

/** Who changed what, when and from where. */
export function AuditLog() {
  const { session, account } = useScope()
  return (
    // Its entries are of both modes, and the API shows them in live mode alone.
    <ScopeProvider session={session} account={account} mode="live">
      <Entries />
    </ScopeProvider>
  )
}

function Entries() {
  const filters = useFilters(['since', 'until'])
  const { since, until } = filters.values
  const list = useList('GET /v1/audit-log', {
    query: given({ since: startOfDay(since), until: startOfDay(until, 1) }),
  })
  return (
    <Screen title="Audit log" subtitle="Who changed what, when and from where. Of both modes, kept for 400 days.">
      <div className="wrapped">
        <FilteredList
          filters={filters}
          inputs={
            <>
              <DayFilter filters={filters} name="since" label="From day" />
              <DayFilter filters={filters} name="until" label="To day" />
            </>
          }
          label="Audit log"
          list={list}
          columns={columns}
          keyOf={({ id }) => id}
          nothingFits={{ title: 'Nothing was changed on these days', hint: 'Choose other days.' }}
          empty={
            <Empty title="Nothing yet">
              Changes of keys, members, webhooks and domains are listed here, and who sent, imported, published or
              deleted what.
            </Empty>
          }
        />
      </div>
    </Screen>
  )
}
