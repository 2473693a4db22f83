import { useList } from '../../api/hooks.ts'
import type { Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { SelectFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State, wordOf } from '../../components/state.tsx'
import { type CampaignDetails, type CampaignRecipient, isMoving } from './campaign.ts'

/** All states of a recipient, in the order in which they are come through. */
const statuses: Readonly<Record<CampaignRecipient['status'], true>> = {
  waiting: true,
  queued: true,
  handed_over: true,
  failed: true,
  skipped: true,
  canceled: true,
}

const statusOptions = Object.keys(statuses).map((value) => ({ value, label: wordOf(value) }))

/** Why somebody was skipped, for people. The reason of a failure is a sentence already. */
const reasons: Readonly<Record<string, string>> = {
  left: 'Left the audience',
  unsubscribed: 'Unsubscribed',
  suppressed: 'Suppressed',
}

const columns: readonly Column<CampaignRecipient>[] = [
  {
    header: 'Address',
    cell: ({ subscriberId, email }) =>
      email === null ? (
        <span className="dimmed">The person was deleted</span>
      ) : (
        <ScreenLink to={`/subscribers/${subscriberId}`} title={email}>
          {email}
        </ScreenLink>
      ),
    phoneLine: ({ reason }) => whyOf(reason),
  },
  { header: 'State', width: '130px', cell: ({ status }) => <State of={status} /> },
  {
    header: 'Email',
    width: '130px',
    cell: ({ emailId, emailStatus }) =>
      emailId === null ? (
        '–'
      ) : (
        <ScreenLink to={`/emails/${emailId}`}>
          {emailStatus === null ? 'Show it' : <State of={emailStatus} />}
        </ScreenLink>
      ),
  },
  {
    header: 'Why',
    isMinor: true,
    cell: ({ reason }) => <span title={reason ?? undefined}>{whyOf(reason) ?? '–'}</span>,
  },
]

const variantColumn: Column<CampaignRecipient> = {
  header: 'Variant',
  width: '130px',
  isMinor: true,
  cell: ({ variant }) => variant ?? '–',
}

function whyOf(reason: string | null): string | null {
  return reason === null ? null : (reasons[reason] ?? reason)
}

const pollMs = 5_000

/** The people that a campaign goes to, each with what became of the email. */
export function CampaignRecipients({ campaign }: { campaign: CampaignDetails }) {
  const filters = useFilters(['recipient'])
  const { recipient } = filters.values
  const list = useList(
    'GET /v1/campaigns/:id/recipients',
    {
      params: { id: campaign.id },
      query: given({ status: recipient as CampaignRecipient['status'] | undefined }),
    },
    { pollMs: isMoving(campaign, Date.now()) ? pollMs : undefined },
  )
  return (
    <FilteredList
      label="Recipients"
      filters={filters}
      inputs={<SelectFilter filters={filters} name="recipient" label="State" options={statusOptions} />}
      list={list}
      columns={campaign.abTest === null ? columns : [...columns, variantColumn]}
      keyOf={({ subscriberId }) => subscriberId}
      nothingFits={{
        title: 'No recipient is in this state',
        hint: 'Look at all of them, or at the counts above.',
      }}
      empty={<Empty title="It went to nobody">Nobody in the audience was active when it started.</Empty>}
    />
  )
}
