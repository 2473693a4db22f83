import { useChoices, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { DayFilter, SelectFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { LinkButton } from '../../components/link-button.tsx'
import { startOfDay } from '../../components/local-time.ts'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { wordOf } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { unread } from '../../components/unread.tsx'
import { durationOf, type Request, RequestStatus, statusFilters } from './request.tsx'

const columns: readonly Column<Request>[] = [
  {
    header: 'Status',
    width: '110px',
    cell: ({ status }) => <RequestStatus status={status} />,
    phoneLine: ({ at }) => <Time at={at} />,
  },
  {
    header: 'Request',
    cell: ({ id, method, path, errorCode }) => (
      <>
        <ScreenLink to={`/logs/${id}`} title={`${method} ${path}`}>
          <span className="mono">
            {method} {path}
          </span>
        </ScreenLink>
        {errorCode !== null && <span className="second-line">{wordOf(errorCode)}</span>}
      </>
    ),
  },
  { header: 'Key', width: '200px', isMinor: true, cell: ({ key }) => <span title={key.id}>{key.name}</span> },
  { header: 'Duration', width: '110px', align: 'right', isMinor: true, cell: durationOf },
  { header: 'When', width: '140px', align: 'right', isMinor: true, cell: ({ at }) => <Time at={at} /> },
]

const filterNames = ['status', 'key', 'since', 'until'] as const
/** Milliseconds to the next look for new requests. */
const pollMs = 5_000

/** Requests of the account's keys, newest first. */
export function RequestList() {
  const { mode, can } = useScope()
  const filters = useFilters(filterNames)
  const { status, key, since, until } = filters.values
  const keys = useChoices('GET /v1/api-keys', { query: {} })
  const list = useList(
    'GET /v1/request-logs',
    {
      query: given({
        status,
        key,
        since: startOfDay(since),
        until: startOfDay(until, 1),
      }),
    },
    { pollMs: until === undefined ? pollMs : undefined },
  )
  return (
    <Screen title="Logs" subtitle={`Requests of your ${mode} keys to the API, kept for 7 days.`}>
      <FilteredList
        filters={filters}
        inputs={
          <>
            <SelectFilter
              filters={filters}
              name="status"
              label="Failures"
              isWide
              options={withValue(statusFilters, status)}
            />
            <SelectFilter
              filters={filters}
              name="key"
              label="Key"
              isWide
              options={withValue(keys.data?.map(({ id, name }) => ({ value: id, label: name })) ?? [], key)}
            />
            <DayFilter filters={filters} name="since" label="From day" />
            <DayFilter filters={filters} name="until" label="To day" />
          </>
        }
        unreadOptions={unread(keys, 'The keys')}
        label="Requests"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        nothingFits={{
          title: 'No request fits these filters',
          hint: 'None was made, or it was made more than 7 days ago.',
        }}
        empty={
          <Empty
            title={`No requests with ${mode} keys yet`}
            action={
              can('api_keys:read') && (
                <LinkButton variant="default" to="/settings/api-keys">
                  To the API keys
                </LinkButton>
              )
            }
          >
            Call the API with a key, and the request stands here a second later. Where it does not, request logs are
            switched off: the operator of this service sets <span className="mono">REQUEST_LOGS</span>.
          </Empty>
        }
      />
    </Screen>
  )
}

type Option = { value: string; label: string }

/** Returns the options with the value that is set, which may be of a deleted key or typed into the address. */
function withValue(options: readonly Option[], value: string | undefined): readonly Option[] {
  return value === undefined || options.some((option) => option.value === value)
    ? options
    : [...options, { value, label: value }]
}
