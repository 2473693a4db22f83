import { type RowOf, useList } from '../../api/hooks.ts'
import type { Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { TextFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { useFilters } from '../../components/filters.ts'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { Time } from '../../components/time.tsx'

type Account = RowOf<'GET /v1/operator/accounts'>

const columns: readonly Column<Account>[] = [
  {
    header: 'Name',
    cell: ({ id, name }) => (
      <>
        <ScreenLink to={`/accounts/${id}`} title={name}>
          {name}
        </ScreenLink>
        <span className="second-line mono">{id}</span>
      </>
    ),
    phoneLine: ({ lastUsedAt }) => (
      <>
        Used <Time at={lastUsedAt} none="never" />
      </>
    ),
  },
  { header: 'Plan', width: '140px', cell: ({ plan }) => <span title={plan}>{plan}</span> },
  {
    header: 'Last used',
    width: '150px',
    isMinor: true,
    cell: ({ lastUsedAt }) => <Time at={lastUsedAt} none="Never" />,
  },
  { header: 'Created', width: '150px', isMinor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
]

/** All accounts of the service. */
export function AccountList() {
  const filters = useFilters(['search'])
  const list = useList('GET /v1/operator/accounts', { query: filters.values })
  return (
    <Screen title="Accounts" subtitle="All accounts of this service, newest first.">
      <FilteredList
        filters={filters}
        inputs={<TextFilter filters={filters} name="search" label="Name or ID begins with" isWide />}
        label="Accounts"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        nothingFits={{
          title: 'No account fits',
          hint: `No name and no ID begins with “${filters.values.search}”.`,
        }}
        empty={<Empty title="No accounts">The first start makes one.</Empty>}
      />
    </Screen>
  )
}
