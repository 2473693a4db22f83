import '../../styles/overview.css'
import { SegmentedControl } from '@mantine/core'
import type { Result } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Empty } from '../../components/empty.tsx'
import { useFilters } from '../../components/filters.ts'
import { Loaded, Loading } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { Attention, useFindings } from './attention.tsx'
import { FirstSteps } from './first-steps.tsx'
import { countOf, millisecondsOf, percentOf } from './format.ts'
import { Panel } from './panel.tsx'
import { nameOf, type Period, periods, queryOf } from './period.ts'

type Statistics = Result<'GET /v1/statistics'>

const pollMs = 30_000

/** How the account is doing, and what needs attention. */
export function Overview() {
  const { can } = useScope()
  const filters = useFilters(['period'])
  const period = periods.find(({ value }) => value === filters.values.period) ?? periods[0]
  const statistics = useGet('GET /v1/statistics', { query: queryOf(period) }, { pollMs: () => pollMs })
  const emails = useGet('GET /v1/emails', { query: { limit: 1 } }, { enabled: can('emails:read') })
  const isNew = emails.data?.data.length === 0
  const { findings, isReading, failed } = useFindings()
  return (
    <Screen
      title="Overview"
      subtitle={`What happened in ${period.words}.`}
      action={
        <SegmentedControl
          size="xs"
          aria-label="Period"
          value={period.value}
          onChange={(value) => filters.set('period', value === 'day' ? null : value)}
          data={periods.map(({ value, label }) => ({ value, label }))}
        />
      }
    >
      {isReading || emails.isLoading ? (
        <Loading />
      ) : (
        <>
          {isNew && <FirstSteps />}
          <Attention
            findings={findings}
            failed={emails.data === undefined && emails.isError ? [...failed, emails] : failed}
          />
          <Loaded query={statistics} what="statistics">
            {(data) => <Figures statistics={data} period={period} isNew={isNew} />}
          </Loaded>
        </>
      )}
    </Screen>
  )
}

function Figures({ statistics, period, isNew }: { statistics: Statistics; period: Period; isNew: boolean }) {
  const { totals, data, step } = statistics
  const { emails, webhooks } = totals
  const hasEmails = emails !== null && Object.values(emails).some((value) => typeof value === 'number' && value > 0)
  const hasWebhooks = webhooks !== null && webhooks.attempts > 0
  if (!hasEmails && !hasWebhooks) {
    if (isNew) return null
    return (
      <Empty title={`Nothing happened in ${period.words}`}>
        {period.value === 'month'
          ? 'Send an email, and its figures stand here.'
          : 'Choose a longer period to see more.'}
      </Empty>
    )
  }
  const names = data.map(({ start }) => ({ start, name: nameOf(start, step) }))
  const days = step === 'day' ? ', by day of UTC' : ', by hour'
  return (
    <>
      {hasEmails && (
        <Panel
          title="Emails"
          chartTitle={`Recipients${days}`}
          tiles={[
            { name: 'Sent', value: countOf(emails.sent) },
            { name: 'Delivered', value: countOf(emails.delivered), second: percentOf(emails.rates.delivery) },
            { name: 'Bounced', value: countOf(emails.bounced), second: percentOf(emails.rates.bounce) },
            { name: 'Complained', value: countOf(emails.complained), second: percentOf(emails.rates.complaint, 2) },
            { name: 'Opened', value: countOf(emails.opened), second: percentOf(emails.rates.open) },
            { name: 'Clicked', value: countOf(emails.clicked), second: percentOf(emails.rates.click) },
          ]}
          chart={{
            kind: 'lines',
            data: data.map((bucket, index) => ({
              ...(names[index] ?? { start: bucket.start, name: '' }),
              Sent: bucket.emails?.sent ?? 0,
              Delivered: bucket.emails?.delivered ?? 0,
              Bounced: bucket.emails?.bounced ?? 0,
            })),
            series: [
              { name: 'Sent', color: 'var(--busy)' },
              { name: 'Delivered', color: 'var(--good)' },
              { name: 'Bounced', color: 'var(--bad)' },
            ],
          }}
        />
      )}
      {hasWebhooks && (
        <Panel
          title="Deliveries to webhooks"
          chartTitle={`Attempts${days}`}
          tiles={[
            { name: 'Attempts', value: countOf(webhooks.attempts) },
            {
              name: 'Failed attempts',
              value: countOf(webhooks.failedAttempts),
              second: percentOf(webhooks.rates.failure),
            },
            { name: 'Failed deliveries', value: countOf(webhooks.failedDeliveries), second: 'after the last attempt' },
            { name: 'Latency (median)', value: millisecondsOf(webhooks.latency.p50Ms) },
            { name: 'Latency (p95)', value: millisecondsOf(webhooks.latency.p95Ms) },
            { name: 'Latency (p99)', value: millisecondsOf(webhooks.latency.p99Ms) },
          ]}
          chart={{
            kind: 'bars',
            data: data.map((bucket, index) => ({
              ...(names[index] ?? { start: bucket.start, name: '' }),
              Succeeded: (bucket.webhooks?.attempts ?? 0) - (bucket.webhooks?.failedAttempts ?? 0),
              Failed: bucket.webhooks?.failedAttempts ?? 0,
            })),
            series: [
              { name: 'Succeeded', color: 'var(--good)' },
              { name: 'Failed', color: 'var(--bad)' },
            ],
          }}
        />
      )}
    </>
  )
}
