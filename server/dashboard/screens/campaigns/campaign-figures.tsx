import '../../styles/overview.css'
import { Progress, Text } from '@mantine/core'
import { useGet } from '../../api/hooks.ts'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Facts } from '../../components/facts.tsx'
import { countOf, percentOf } from '../overview/format.ts'
import { Panel } from '../overview/panel.tsx'
import { type CampaignDetails, type CampaignFigures as Figures, handledOf, isMoving } from './campaign.ts'
import { hoursOf } from './hours.ts'

/** Milliseconds between two looks at the figures while it is on its way, and after it. */
const pollMs = 3_000
const lateMs = 30_000

/** How far a campaign is, and what became of its emails. */
export function CampaignFigures({ campaign }: { campaign: CampaignDetails }) {
  const { data, error } = useGet(
    'GET /v1/campaigns/:id/statistics',
    { params: { id: campaign.id } },
    { pollMs: () => (isMoving(campaign, Date.now()) ? pollMs : lateMs) },
  )
  if (data === undefined)
    return error === null ? <div className="figures-place" aria-busy="true" /> : <ErrorNotice error={error} />
  return (
    <>
      <Way figures={data} isOver={campaign.endedAt !== null} />
      <Results figures={data} />
    </>
  )
}

function Way({ figures, isOver }: { figures: Figures; isOver: boolean }) {
  const { recipients, waiting, queued, handedOver, failed, canceled, skipped } = figures
  const share = recipients === 0 ? 1 : handledOf(figures) / recipients
  const rows: [string, number][] = [
    ['Waiting', waiting],
    ['Queued', queued],
    ['Handed over', handedOver],
    ['Failed', failed],
    ['Skipped: unsubscribed', skipped.unsubscribed],
    ['Skipped: left the audience', skipped.left],
    ['Skipped: suppressed', skipped.suppressed],
    ['Canceled', canceled],
  ]
  return (
    <section aria-label="Progress">
      {!isOver && <Progress value={100 * share} mb="xs" aria-label="Recipients handled" />}
      <Text aria-live="polite" mb="xs">
        {recipients === 0
          ? 'Nobody in the audience was active when it started.'
          : `${countOf(handedOver)} of ${countOf(recipients)} ${recipients === 1 ? 'email was' : 'emails were'} handed over${isOver ? '.' : ` (${percentOf(share, 0)} done).`}`}
      </Text>
      <Facts
        of={rows
          .filter(([name, count]) => count > 0 && name !== 'Handed over')
          .map(([name, count]) => [
            name,
            <span key="count" className="number">
              {countOf(count)}
            </span>,
          ])}
      />
    </section>
  )
}

function Results({ figures }: { figures: Figures }) {
  const { emails } = figures
  // The rates of the account's statistics compare with what was tried too: docs/concepts/statistics.md.
  const tried = figures.handedOver
  const data = hoursOf(figures.hours)
  if (data.length === 0) return null
  return (
    <Panel
      title="Results"
      chartTitle="Recipients, by hour"
      tiles={[
        { name: 'Sent', value: countOf(emails.sent) },
        { name: 'Delivered', value: countOf(emails.delivered), second: rate(emails.delivered, tried) },
        { name: 'Bounced', value: countOf(emails.bounced), second: rate(emails.bounced, tried) },
        { name: 'Complained', value: countOf(emails.complained), second: rate(emails.complained, emails.sent, 2) },
        { name: 'Opened', value: countOf(emails.opened), second: rate(emails.opened, emails.sent) },
        { name: 'Clicked', value: countOf(emails.clicked), second: rate(emails.clicked, emails.sent) },
      ]}
      chart={{
        kind: 'lines',
        data,
        series: [
          { name: 'Delivered', color: 'var(--good)' },
          { name: 'Opened', color: 'var(--busy)' },
          { name: 'Clicked', color: 'var(--warn)' },
          { name: 'Bounced', color: 'var(--bad)' },
        ],
      }}
    />
  )
}

function rate(count: number, of: number, places: 1 | 2 = 1): string {
  return percentOf(of === 0 ? null : count / of, places)
}
