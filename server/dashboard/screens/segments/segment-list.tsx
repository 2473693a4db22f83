import { IconPlus } from '@tabler/icons-react'
import { useChoices, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { SelectFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { LinkButton } from '../../components/link-button.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { Time } from '../../components/time.tsx'
import { unread } from '../../components/unread.tsx'
import type { Segment } from './segment.ts'

/** The segments of all audiences, or of one. Both modes share them. */
export function SegmentList() {
  const { can } = useScope()
  const filters = useFilters(['audience'])
  const { audience: audienceId } = filters.values
  const list = useList('GET /v1/segments', { query: given({ audienceId }) })
  const audiences = useChoices('GET /v1/audiences', { query: {} }, { enabled: can('audiences:read') })
  const options = audiences.data?.map(({ id, name }) => ({ value: id, label: name })) ?? []
  const names = new Map(options.map(({ value, label }) => [value, label]))
  const columns: readonly Column<Segment>[] = [
    {
      header: 'Name',
      cell: ({ id, name }) => (
        <ScreenLink to={`/segments/${id}`} title={name}>
          {name}
        </ScreenLink>
      ),
      phoneLine: (segment) => names.get(segment.audienceId) ?? segment.audienceId,
    },
    {
      header: 'Audience',
      isMinor: true,
      cell: (segment) => (
        <ScreenLink to={`/audiences/${segment.audienceId}`}>
          {names.get(segment.audienceId) ?? segment.audienceId}
        </ScreenLink>
      ),
    },
    { header: 'Changed', width: '140px', align: 'right', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
  ]
  const create = (variant: 'filled' | 'default') =>
    can('segments:write') && (
      <LinkButton
        to="/segments/new"
        search={given({ audience: audienceId })}
        variant={variant}
        leftSection={<IconPlus size={16} aria-hidden />}
      >
        Create segment
      </LinkButton>
    )
  return (
    <Screen
      title="Segments"
      subtitle="People of an audience for whom conditions hold. Both modes share them."
      action={create('filled')}
    >
      <FilteredList
        filters={filters}
        inputs={<SelectFilter filters={filters} name="audience" label="Audience" isWide options={options} />}
        unreadOptions={unread(audiences, 'The audiences')}
        label="Segments"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        nothingFits={{
          title: 'No segment of this audience yet',
          hint: 'Segments of other audiences are not shown.',
        }}
        empty={
          <Empty title="No segments yet" action={create('default')}>
            Create one to write to some people of an audience, such as those on a plan who opened something lately.
          </Empty>
        }
      />
    </Screen>
  )
}
