import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { useGet, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { SelectFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { ShareBar } from '../../components/share-bar.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { countOf, percentOf } from '../overview/format.ts'
import { type Campaign, type CampaignStatus, handledOf, statusOptions } from './campaign.ts'

/** Milliseconds between two looks at the list, and at the progress of one that is sending. */
const pollMs = 5_000

/** Campaigns whose progress is read: each is a request of its own. Beyond them, their own screen shows it. */
const maxFollowed = 5

/** The campaigns of this mode, newest first. */
export function CampaignList() {
  const { mode, can, path } = useScope()
  const navigate = useNavigate()
  const filters = useFilters(['status'])
  const { status } = filters.values
  const list = useList(
    'GET /v1/campaigns',
    { query: given({ status: status as CampaignStatus | undefined }) },
    { pollMs },
  )
  const followed = new Set(
    list.rows
      ?.filter(({ status }) => status === 'sending' || status === 'paused')
      .slice(0, maxFollowed)
      .map(({ id }) => id),
  )
  const create = (variant: 'filled' | 'default') =>
    can('campaigns:write') && (
      <Button
        variant={variant}
        leftSection={<IconPlus size={16} aria-hidden />}
        onClick={() => void navigate({ to: path('/campaigns/new') })}
      >
        Create campaign
      </Button>
    )
  return (
    <Screen title="Campaigns" subtitle="One message to everyone in an audience." action={create('filled')}>
      <FilteredList
        label="Campaigns"
        filters={filters}
        inputs={<SelectFilter filters={filters} name="status" label="State" options={statusOptions} />}
        list={list}
        columns={columnsWith(followed)}
        keyOf={({ id }) => id}
        nothingFits={{
          title: 'No campaign fits these filters',
          hint: 'Campaigns of the other mode are not searched.',
        }}
        empty={
          <Empty title={`No campaigns in ${mode} mode yet`} action={create('default')}>
            {mode === 'live'
              ? 'Write a message to an audience, send yourself a test, and send it now or at a time.'
              : 'Try one here: a campaign of test mode goes through everything and sends to nobody.'}
          </Empty>
        }
      />
    </Screen>
  )
}

function columnsWith(followed: ReadonlySet<string>): Column<Campaign>[] {
  return [
    {
      header: 'Name',
      cell: ({ id, name, subject }) => (
        <>
          <ScreenLink to={`/campaigns/${id}`} title={name}>
            {name}
          </ScreenLink>
          <span className="second-line" title={subject}>
            {subject}
          </span>
        </>
      ),
    },
    {
      header: 'State',
      width: '150px',
      cell: (campaign) => (
        <>
          <State of={campaign.status} />
          <span className="second-line phone-only">
            <Since campaign={campaign} />
          </span>
        </>
      ),
    },
    {
      header: 'Progress',
      width: '170px',
      isMinor: true,
      cell: (campaign) => (followed.has(campaign.id) ? <Progress campaign={campaign} /> : endOf(campaign)),
    },
    {
      header: 'Recipients',
      width: '110px',
      align: 'right',
      isMinor: true,
      cell: ({ recipients, startedAt }) => (
        <span className="number">{startedAt === null ? '–' : countOf(recipients)}</span>
      ),
    },
    {
      header: 'Since',
      width: '140px',
      align: 'right',
      isMinor: true,
      cell: (campaign) => <Since campaign={campaign} />,
    },
  ]
}

/** How far one is that is on its way. */
function Progress({ campaign: { id, status } }: { campaign: Campaign }) {
  const { data, error } = useGet(
    'GET /v1/campaigns/:id/statistics',
    { params: { id } },
    { pollMs: () => (status === 'sending' ? pollMs : false) },
  )
  if (data === undefined) return error === null ? '–' : 'Not known'
  const share = data.recipients === 0 ? 1 : handledOf(data) / data.recipients
  return (
    <span className="share">
      <ShareBar share={share} isLimit={false} />
      <span className="number">{percentOf(share, 0)}</span>
    </span>
  )
}

function endOf({ status }: Campaign) {
  return status === 'completed' ? <span className="number">100 %</span> : '–'
}

/** When it came into its state, or leaves it. */
function Since({ campaign: { status, scheduledAt, startedAt, endedAt, updatedAt } }: { campaign: Campaign }) {
  if (status === 'scheduled') return <Time at={scheduledAt} isAhead />
  if (status === 'draft') return <Time at={updatedAt} />
  return <Time at={endedAt ?? startedAt} />
}
