import { useGet, useGetEach } from '../../api/hooks.ts'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { Section } from '../../components/facts.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { unread } from '../../components/unread.tsx'
import { countOf } from '../overview/format.ts'
import { type Campaign, type CampaignFigures, rateOf } from './campaign.ts'

/** Campaigns that one is compared with: each is a request. */
const compared = 5

type Row = { campaign: Pick<Campaign, 'id' | 'name'>; figures: CampaignFigures; isThis: boolean }

const columns: readonly Column<Row>[] = [
  {
    header: 'Campaign',
    cell: ({ campaign: { id, name }, isThis }) =>
      isThis ? (
        <strong title={name}>{name}</strong>
      ) : (
        <ScreenLink to={`/campaigns/${id}`} title={name}>
          {name}
        </ScreenLink>
      ),
    phoneLine: ({ figures: { emails, handedOver } }) => `${rateOf(emails.bounced, handedOver)} bounced`,
  },
  rate('Sent', ({ sent }) => countOf(sent), { isMinor: true }),
  rate('Opened', ({ opened, sent }) => rateOf(opened, sent)),
  rate('Clicked', ({ clicked, sent }) => rateOf(clicked, sent)),
  rate('Bounced', ({ bounced }, tried) => rateOf(bounced, tried), { isMinor: true }),
  rate('Unsubscribed', ({ unsubscribed, sent }) => rateOf(unsubscribed, sent, 2), { isMinor: true, width: '124px' }),
]

function rate(
  header: string,
  of: (emails: CampaignFigures['emails'], tried: number) => string,
  rest: Partial<Column<Row>> = {},
): Column<Row> {
  const cell = ({ figures }: Row) => <span className="number">{of(figures.emails, figures.handedOver)}</span>
  return { header, width: '92px', align: 'right', cell, ...rest }
}

/** Reads the last campaigns that were completed, with their figures, where this one has started. */
export function useComparison(campaign: Campaign) {
  const enabled = campaign.startedAt !== null
  const query = useGet('GET /v1/campaigns', { query: { status: 'completed', limit: compared + 1 } }, { enabled })
  const others = query.data?.data.filter(({ id }) => id !== campaign.id).slice(0, compared) ?? []
  const read = useGetEach(
    'GET /v1/campaigns/:id/statistics',
    others.map(({ id }) => ({ params: { id } })),
  )
  const rows = others.flatMap((other, index) => {
    const theirs = read[index]?.data
    return theirs === undefined ? [] : [{ campaign: other, figures: theirs, isThis: false }]
  })
  return { rows, queries: [query, ...read] }
}

type Props = { campaign: Campaign; figures: CampaignFigures; comparison: ReturnType<typeof useComparison> }

/** The rates of a campaign beside those of the last ones that were completed. */
export function CampaignComparison({ campaign, figures, comparison: { rows, queries } }: Props) {
  const failed = queries.filter(({ data, isError }) => data === undefined && isError)
  const refetch = () => failed.map((query) => query.refetch())
  const fault = failed[0]
    ? unread({ ...failed[0], refetch }, rows.length === 0 ? 'The campaigns before' : 'Some of the campaigns before')
    : null
  if (rows.length === 0) return fault
  return (
    <Section title="Beside the last ones">
      <PlainTable
        label="Beside the last ones"
        rows={[{ campaign, figures, isThis: true }, ...rows]}
        columns={columns}
        keyOf={({ campaign: { id } }) => id}
      />
      {fault}
    </Section>
  )
}
