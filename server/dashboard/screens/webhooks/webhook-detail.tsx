import { Alert } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import { Fragment, useState } from 'react'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded, Loading } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { ExactTime, Time } from '../../components/time.tsx'
import { Deliveries } from './deliveries.tsx'
import { disabledReasons } from './disabled-reasons.ts'
import { Recoveries, type RecoveryList, useRecoveries } from './recoveries.tsx'
import type { Webhook } from './webhook.ts'
import { WebhookActions } from './webhook-actions.tsx'

const pollMs = 5_000

/** One webhook: how it does, its deliveries, and what can be done with it. */
export function WebhookDetail() {
  const { id = '' } = useParams({ strict: false })
  return <OneWebhook key={id} id={id} />
}

function OneWebhook({ id }: { id: string }) {
  const { can } = useScope()
  const query = useGet('GET /v1/webhooks/:id', { params: { id } }, { pollMs: () => pollMs })
  const recoveries = useRecoveries(id)
  const { data: webhook } = query
  // Read before anything is shown, so that the deliveries below do not move. Only once: a reading that failed is
  // repeated while the screen is used.
  const [isReading, setReading] = useState(true)
  if (isReading && (recoveries.rows !== undefined || recoveries.error !== null)) setReading(false)
  return (
    <Screen
      title={webhook?.url ?? 'Webhook'}
      parent={{ label: 'Webhooks', path: '/webhooks' }}
      subtitle={webhook && <State of={webhook.status} />}
      action={webhook && can('webhooks:write') && <WebhookActions webhook={webhook} />}
    >
      <Loaded query={query} what="webhook">
        {(read) => (isReading ? <Loading /> : <Details webhook={read} recoveries={recoveries} />)}
      </Loaded>
    </Screen>
  )
}

function Details({ webhook, recoveries }: { webhook: Webhook; recoveries: RecoveryList }) {
  const { portal } = useScope()
  const { health, disabledReason } = webhook
  const { customer = '', ...others } = webhook.metadata
  const metadata = Object.entries(others)
  const { attempts = 0, successRate = null, meanDurationMs = null, maxDurationMs = null } = health?.lastHour ?? {}
  return (
    <>
      {disabledReason !== null && (
        <Alert color="gray" mb="lg" role="note" title="It receives nothing">
          It was disabled because {disabledReasons[disabledReason]}. Enable it, then send again what it has missed.
        </Alert>
      )}
      <Facts
        of={[
          [
            'Last hour',
            attempts === 0
              ? 'No attempts'
              : `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}, ${percent(successRate)} succeeded`,
          ],
          ...(meanDurationMs === null
            ? []
            : ([['Answer time', `${meanDurationMs} ms on average, ${maxDurationMs} ms at most`]] as const)),
          [
            'Waiting',
            health === undefined || health.pending === 0 ? (
              'Nothing'
            ) : (
              <>
                {health.pending}, the oldest since <Time at={health.oldestPendingAt} />
              </>
            ),
          ],
          ...(health === undefined || health.limit === null
            ? []
            : ([['In flight', `${health.inFlight} of at most ${health.limit}`]] as const)),
          [
            'Events',
            <span key="events" className="mono">
              {webhook.events.map((type, index) => (
                <Fragment key={type}>
                  {index > 0 && ', '}
                  <ScreenLink to={`/event-types/${type}`}>{type}</ScreenLink>
                </Fragment>
              ))}
            </span>,
          ],
          [
            'Receiver',
            <ScreenLink key="receiver" to={`/webhooks/${webhook.id}/receiver`}>
              Code in Node, Python, Go, PHP and Ruby
            </ScreenLink>,
          ],
          ...(portal !== null || customer.trim() === ''
            ? []
            : ([
                [
                  'Customer',
                  <ScreenLink key="customer" to="/settings/portal-sessions" search={{ customer }}>
                    <bdi>{customer}</bdi>
                  </ScreenLink>,
                ],
              ] as const)),
          ...(portal !== null || metadata.length === 0
            ? []
            : ([
                [
                  'Metadata',
                  metadata.map(([name, value]) => (
                    <div key={name}>
                      <bdi>{name}</bdi>: <bdi>{value}</bdi>
                    </div>
                  )),
                ],
              ] as const)),
          ...(webhook.description === null ? [] : ([['Description', webhook.description]] as const)),
          ['Created', <ExactTime key="at" at={webhook.createdAt} />],
          ['ID', <Copyable key="id" label="Copy the ID" value={webhook.id} />],
        ]}
      />
      <Recoveries list={recoveries} />
      <Section title="Deliveries">
        <Deliveries webhookId={webhook.id} />
      </Section>
    </>
  )
}

function percent(share: number | null): string {
  return share === null ? '–' : `${(share * 100).toFixed(share > 0.99 && share < 1 ? 1 : 0)} %`
}
