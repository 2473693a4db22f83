import { Button } from '@mantine/core'
import { useGet, useList } from '../../api/hooks.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Filters } from '../../components/filter-bar.tsx'
import { SelectFilter } from '../../components/filter-inputs.tsx'
import { useFilters } from '../../components/filters.ts'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { Time } from '../../components/time.tsx'
import { type EventSummary, summaryOf } from './event-summary.ts'

const columns: readonly Column<EventSummary>[] = [
  {
    header: 'Event',
    cell: ({ id, type }) => <ScreenLink to={`/events/${id}`}>{type}</ScreenLink>,
    phoneLine: ({ about }) => about,
  },
  { header: 'About', isMinor: true, cell: ({ about }) => <span title={about}>{about}</span> },
  { header: 'When', width: '140px', align: 'right', cell: ({ at }) => <Time at={at} /> },
]

/** What happened, newest first. */
export function EventList() {
  const filters = useFilters(['type'])
  const { values, clear, isSet } = filters
  const { data: types } = useGet('GET /v1/event-types', {})
  const type = types?.data.find((known) => known.type === values.type)?.type
  const list = useList('GET /v1/events', { query: type === undefined ? {} : { type } })
  return (
    <Screen title="Events" subtitle="What happened, as it was pushed to webhooks.">
      <Filters isSet={isSet}>
        <SelectFilter
          filters={filters}
          name="type"
          label="Event"
          isWide
          options={types?.data.map((known) => known.type) ?? []}
        />
      </Filters>
      <DataTable
        label="Events"
        list={{ ...list, rows: list.rows?.map(summaryOf) }}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          isSet ? (
            <Empty
              title="No event of this type"
              action={
                <Button variant="default" onClick={clear}>
                  Show all
                </Button>
              }
            >
              It has not happened yet, or is not kept any more.
            </Empty>
          ) : (
            <Empty title="Nothing has happened yet">Send an email or add a subscriber, and it stands here.</Empty>
          )
        }
      />
    </Screen>
  )
}
