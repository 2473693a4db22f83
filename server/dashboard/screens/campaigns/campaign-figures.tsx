import '../../styles/overview.css'
import { Progress, Text } from '@mantine/core'
import { useGet, useReadAgain } from '../../api/hooks.ts'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Facts } from '../../components/facts.tsx'
import { countOf, percentOf } from '../overview/format.ts'
import { Panel } from '../overview/panel.tsx'
import { AbTestResults } from './ab-test-results.tsx'
import { type CampaignDetails, type CampaignFigures as Figures, handledOf, isMoving, rateOf } from './campaign.ts'
import { CampaignLinks, CampaignProviders } from './campaign-breakdown.tsx'
import { CampaignComparison, type useComparison } from './campaign-comparison.tsx'
import { chartStepsOf } from './chart-steps.ts'

/** Milliseconds between two looks at the figures while it is on its way, and after it. */
const pollMs = 3_000
const lateMs = 30_000

/** The list of recipients: read again when none is queued any more. */
const recipients = ['GET /v1/campaigns/:id/recipients'] as const

/** Reads the figures of a campaign that has started. */
export function useFigures(campaign: CampaignDetails) {
  return useGet(
    'GET /v1/campaigns/:id/statistics',
    { params: { id: campaign.id } },
    {
      enabled: campaign.startedAt !== null,
      // Of a paused or canceled campaign, emails that are queued come back, and conversations end.
      pollMs: (figures) => (isMoving(campaign, Date.now()) || (figures?.queued ?? 0) > 0 ? pollMs : lateMs),
    },
  )
}

type Props = {
  campaign: CampaignDetails
  query: ReturnType<typeof useFigures>
  comparison: ReturnType<typeof useComparison>
}

/** How far a campaign is, and what became of its emails. */
export function CampaignFigures({ campaign, query, comparison }: Props) {
  const { data, error, refetch } = query
  // While it is sending, the list is polled. After that, what is queued comes back or ends.
  const hasQueued = !isMoving(campaign, Date.now()) && (data?.queued ?? 0) > 0
  useReadAgain(hasQueued, recipients)
  if (data === undefined) {
    if (error !== null) return <ErrorNotice error={error} onRetry={() => void refetch()} />
    return <div className="figures-place" aria-busy="true" />
  }
  return (
    <>
      <Way figures={data} isOver={campaign.endedAt !== null} />
      <AbTestResults campaign={campaign} figures={data} />
      <Results figures={data} />
      <CampaignLinks links={data.links} />
      <CampaignProviders providers={data.providers} />
      <CampaignComparison campaign={campaign} figures={data} comparison={comparison} />
    </>
  )
}

function Way({ figures, isOver }: { figures: Figures; isOver: boolean }) {
  const { recipients, waiting, queued, handedOver, deferred, failed, canceled, skipped } = figures
  const share = recipients === 0 ? 1 : handledOf(figures) / recipients
  const rows: [string, number][] = [
    ['Waiting', waiting],
    ['Queued', queued],
    ['Handed over', handedOver],
    ['Still tried', deferred],
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
  const { step, rows } = chartStepsOf(figures)
  if (rows.length === 0) return null
  return (
    <Panel
      title="Results"
      chartTitle={`Recipients, by ${step}`}
      tiles={[
        { name: 'Sent', value: countOf(emails.sent), second: `${rateOf(emails.delivered, tried)} delivered` },
        { name: 'Bounced', value: countOf(emails.bounced), second: rateOf(emails.bounced, tried) },
        { name: 'Complained', value: countOf(emails.complained), second: rateOf(emails.complained, emails.sent, 2) },
        { name: 'Opened', value: countOf(emails.opened), second: rateOf(emails.opened, emails.sent) },
        { name: 'Clicked', value: countOf(emails.clicked), second: rateOf(emails.clicked, emails.sent) },
        {
          name: 'Unsubscribed',
          value: countOf(emails.unsubscribed),
          second: rateOf(emails.unsubscribed, emails.sent, 2),
        },
      ]}
      chart={{
        kind: 'lines',
        data: rows,
        series: [
          { name: 'Delivered', color: 'var(--good)' },
          { name: 'Opened', color: 'var(--busy)' },
          { name: 'Clicked', color: 'var(--warn)' },
          { name: 'Bounced', color: 'var(--bad)' },
          { name: 'Unsubscribed', color: 'var(--mantine-color-dimmed)' },
        ],
      }}
    />
  )
}
