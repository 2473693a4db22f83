import { Switch, Text } from '@mantine/core'
import { useGet, useList } from '../../api/hooks.ts'
import type { Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { DayFilter, SelectFilter, TextFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { LinkButton } from '../../components/link-button.tsx'
import { startOfDay } from '../../components/local-time.ts'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { Time } from '../../components/time.tsx'
import { unread } from '../../components/unread.tsx'
import { type EventSummary, summaryOf } from './event-summary.ts'
import { maxLiveEvents, useLiveEvents } from './use-live-events.ts'

const columns: readonly Column<EventSummary>[] = [
  {
    header: 'Event',
    cell: ({ id, type }) => <ScreenLink to={`/events/${id}`}>{type}</ScreenLink>,
    phoneLine: ({ about }) => about,
  },
  { header: 'About', isMinor: true, cell: ({ about }) => <span title={about}>{about}</span> },
  { header: 'When', width: '140px', align: 'right', cell: ({ at }) => <Time at={at} /> },
]

const filterNames = ['search', 'type', 'since', 'until', 'live'] as const

/** The list of events, newest first. While it is live, new events appear at the top. */
export function EventList() {
  const filters = useFilters(filterNames)
  const { values, set } = filters
  const types = useGet('GET /v1/event-types', {})
  const type = types.data?.data.find((known) => known.type === values.type)?.type
  const { search, since, until } = values
  const isSet = [search, values.type, since, until].some((value) => value !== undefined)
  // New events are not in a period that has ended, and the stream cannot be searched.
  const canFollow = until === undefined && search === undefined
  const isOldestFirst = search !== undefined && !search.startsWith('evt_')
  const isOn = values.live !== undefined && canFollow
  const list = useList('GET /v1/events', {
    query: given({
      search,
      // The events about an object begin when it was made: the other way round, all later ones are looked through first.
      order: isOldestFirst ? 'asc' : undefined,
      type,
      since: startOfDay(since),
      until: startOfDay(until, 1),
    }),
  })
  const live = useLiveEvents({ isOn, type, startAfter: list.rows && placeBehind(list.rows, since) })
  // Live events were dropped then, and would be missing between these and the list.
  const isFull = live.events.length === maxLiveEvents
  const rows = merged(live.events, isFull ? [] : list.rows)?.map(summaryOf)
  const liveIds = new Set(live.events.map(({ id }) => id))
  return (
    <Screen
      title="Events"
      subtitle="What happened, as it was pushed to webhooks."
      action={
        <Switch
          labelPosition="left"
          label={live.state === 'connecting' ? 'Live (connecting …)' : 'Live'}
          checked={isOn}
          disabled={!canFollow}
          onChange={(event) => set('live', event.currentTarget.checked ? 'on' : null)}
        />
      }
    >
      <output className="visually-hidden">{isOn ? `Live: ${live.events.length} new events` : ''}</output>
      <FilteredList
        // Following is no filter: nothing is left out by it.
        filters={{ ...filters, isSet }}
        inputs={
          <>
            <TextFilter filters={filters} name="search" label="Search" isWide placeholder="ID of an event or object" />
            <SelectFilter
              filters={filters}
              name="type"
              label="Event"
              isWide
              options={types.data?.data.map((known) => known.type) ?? []}
            />
            <DayFilter filters={filters} name="since" label="From day" />
            <DayFilter filters={filters} name="until" label="To day" />
          </>
        }
        notice={
          <>
            {isOldestFirst && list.error === null && (
              <Text c="dimmed" mb="sm">
                What happened to it, oldest first.
              </Text>
            )}
            {live.error !== null && <ErrorNotice error={live.error} />}
          </>
        }
        unreadOptions={unread(types, 'The event types')}
        label="Events"
        list={{ ...list, rows, hasMore: list.hasMore && !isFull }}
        columns={columns}
        keyOf={({ id }) => id}
        isNew={({ id }) => liveIds.has(id)}
        nothingFits={{
          title: 'No event fits these filters',
          hint:
            search === undefined
              ? 'It has not happened yet, or is not kept any more.'
              : 'The search compares whole IDs: of an event, or of the email, subscriber, audience, domain or campaign that it is about. What happened may not be kept any more.',
        }}
        empty={
          <Empty
            title="Nothing has happened yet"
            action={
              <LinkButton variant="default" to="/emails">
                To the emails
              </LinkButton>
            }
          >
            Send an email or add a subscriber, and it stands here.
          </Empty>
        }
      />
      {isFull && (
        <Text c="dimmed" mt="md">
          These are the newest {maxLiveEvents} events. Reload the page for older ones.
        </Text>
      )}
    </Screen>
  )
}

type AnyEvent = Readonly<Record<string, unknown>>

/**
 * Returns where the live events begin. Without an event in the list, all that ever happened is new, unless the list
 * begins at a day.
 */
function placeBehind([newest]: readonly AnyEvent[], since: string | undefined): string | null {
  if (newest !== undefined) return String(newest.id)
  return since === undefined ? '0' : null
}

/** Returns the live events in front of those of the list, each once. Undefined: nothing is read yet. */
function merged(live: readonly AnyEvent[], listed: readonly AnyEvent[] | undefined): readonly AnyEvent[] | undefined {
  if (listed === undefined) return live.length === 0 ? undefined : live
  const ids = new Set(live.map(({ id }) => id))
  return [...live, ...listed.filter(({ id }) => !ids.has(id))]
}
