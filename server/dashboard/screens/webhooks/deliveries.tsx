import { type RowOf, useGet, useList } from '../../api/hooks.ts'
import type { Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { DayFilter, SelectFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { startOfDay } from '../../components/local-time.ts'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State, wordOf } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'

type Delivery = RowOf<'GET /v1/webhooks/:id/deliveries'>

const statuses: Readonly<Record<Delivery['status'], true>> = {
  pending: true,
  succeeded: true,
  failed: true,
  canceled: true,
}
const statusOptions = Object.keys(statuses).map((value) => ({ value, label: wordOf(value) }))

type Props = { webhookId: string }

/** Milliseconds between two looks for new deliveries. */
const pollMs = 3_000

/** The deliveries of a webhook, newest first. New ones come in by themselves. */
export function Deliveries({ webhookId }: Props) {
  const filters = useFilters(['status', 'eventType', 'since', 'until'])
  const { status, eventType, since, until } = filters.values
  const { data: webhook } = useGet('GET /v1/webhooks/:id', { params: { id: webhookId } })
  const list = useList(
    'GET /v1/webhooks/:id/deliveries',
    {
      params: { id: webhookId },
      query: given({
        status: status as Delivery['status'] | undefined,
        eventType: eventType as Delivery['eventType'] | undefined,
        since: startOfDay(since),
        until: startOfDay(until, 1),
      }),
    },
    { pollMs },
  )
  const columns: Column<Delivery>[] = [
    {
      header: 'Event',
      cell: ({ id, eventType, sample }) => (
        <>
          <ScreenLink to={`/webhooks/${webhookId}/deliveries/${id}`}>{eventType}</ScreenLink>
          {sample && <span className="dimmed"> · test</span>}
        </>
      ),
    },
    { header: 'State', width: '120px', cell: ({ status }) => <State of={status} /> },
    { header: 'Attempts', width: '90px', align: 'right', isMinor: true, cell: ({ attemptCount }) => attemptCount },
    {
      header: 'Next attempt',
      width: '140px',
      align: 'right',
      isMinor: true,
      cell: ({ nextAttemptAt }) => <Time at={nextAttemptAt} isAhead />,
    },
    {
      header: 'Created',
      width: '140px',
      align: 'right',
      isMinor: true,
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
  ]
  return (
    <FilteredList
      filters={filters}
      inputs={
        <>
          <SelectFilter filters={filters} name="status" label="State" options={statusOptions} />
          <SelectFilter filters={filters} name="eventType" label="Event" options={webhook?.events ?? []} />
          <DayFilter filters={filters} name="since" label="From day" />
          <DayFilter filters={filters} name="until" label="To day" />
        </>
      }
      label="Deliveries"
      list={list}
      columns={columns}
      keyOf={({ id }) => id}
      nothingFits={{ title: 'No delivery fits these filters', hint: 'Choose another state, event or time.' }}
      empty={<Empty title="Nothing was sent to it yet">Send it a test, or wait for the first event.</Empty>}
    />
  )
}
