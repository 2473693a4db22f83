import type { ReactNode } from 'react'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { Section } from '../../components/facts.tsx'
import { countOf } from '../overview/format.ts'
import { type CampaignFigures, rateOf } from './campaign.ts'

type Link = CampaignFigures['links'][number]
type Provider = CampaignFigures['providers'][number]

/** Returns a column of numbers. */
export function numbers<Row>(
  header: string,
  of: (row: Row) => ReactNode,
  rest: Partial<Column<Row>> = {},
): Column<Row> {
  return { header, width: '104px', align: 'right', cell: (row) => <span className="number">{of(row)}</span>, ...rest }
}

const linkColumns: readonly Column<Link>[] = [
  {
    header: 'Link',
    cell: ({ link }) => (link === null ? <span className="dimmed">All others</span> : <span title={link}>{link}</span>),
  },
  numbers('People', ({ clicked }) => countOf(clicked)),
  numbers('Clicks', ({ clicks }) => countOf(clicks)),
]

/** How often each link of a campaign was clicked. */
export function CampaignLinks({ links }: { links: readonly Link[] }) {
  if (links.length === 0) return null
  return (
    <Section title="Links">
      <PlainTable label="Links" rows={[...links]} columns={linkColumns} keyOf={({ link }) => link ?? ''} />
    </Section>
  )
}

const providerColumns: readonly Column<Provider>[] = [
  {
    header: 'Provider',
    cell: ({ kind, name }) => (kind === 'other' ? <span className="dimmed">All others</span> : name),
    phoneLine: ({ opened, sent, clicked }) => `${rateOf(opened, sent)} opened, ${rateOf(clicked, sent)} clicked`,
  },
  numbers('Sent', ({ sent }) => countOf(sent)),
  numbers('Bounced', ({ bounced }) => countOf(bounced)),
  numbers('Opened', ({ opened, sent }) => rateOf(opened, sent), { isMinor: true }),
  numbers('Clicked', ({ clicked, sent }) => rateOf(clicked, sent), { isMinor: true }),
  numbers('Complained', ({ complained }) => countOf(complained), { isMinor: true }),
]

/** The results of a campaign at each mailbox provider. */
export function CampaignProviders({ providers }: { providers: readonly Provider[] }) {
  if (providers.length === 0) return null
  return (
    <Section title="Mailbox providers">
      <PlainTable
        label="Mailbox providers"
        rows={[...providers]}
        columns={providerColumns}
        keyOf={({ kind, name }) => `${kind} ${name}`}
      />
    </Section>
  )
}
