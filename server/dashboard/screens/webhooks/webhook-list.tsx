import { Box, Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { type RowOf, useGet, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { unread } from '../../components/unread.tsx'
import { countOf, percentOf } from '../overview/format.ts'
import { daysAgo } from '../overview/period.ts'
import { CreateWebhook } from './create-webhook.tsx'
import { disabledReasons } from './disabled-reasons.ts'

type Webhook = RowOf<'GET /v1/webhooks'>

type Ranking = Result<'GET /v1/statistics/ranking'>['data']

/** Webhooks whose figures are read: the busiest. */
const maxFigures = 100
/** Milliseconds between two looks at the figures. */
const pollMs = 30_000

/** The columns of the list. `figures`: the busiest webhooks since yesterday, null where they are not to be seen. */
const columnsWith = (figures: Ranking | undefined | null): readonly Column<Webhook>[] => [
  {
    header: 'URL',
    cell: ({ id, url, description }) => (
      <>
        <ScreenLink to={`/webhooks/${id}`} title={url}>
          {url}
        </ScreenLink>
        {description !== null && <span className="second-line">{description}</span>}
      </>
    ),
  },
  {
    header: 'State',
    width: '170px',
    cell: ({ status, disabledReason }) => (
      <>
        <State of={status} />
        {disabledReason !== null && <span className="second-line">{disabledReasons[disabledReason]}</span>}
      </>
    ),
    ...(figures != null && { phoneLine: ({ id }: Webhook) => healthOf(id, figures) }),
  },
  ...(figures === null
    ? []
    : [
        {
          header: 'Since yesterday',
          width: '150px',
          align: 'right' as const,
          isMinor: true,
          cell: ({ id }: Webhook) => figures && <Attempts webhookId={id} figures={figures} />,
        },
      ]),
  {
    header: 'Events',
    width: '90px',
    align: 'right',
    isMinor: true,
    cell: ({ events }) => <span title={events.join(', ')}>{events.length}</span>,
  },
  {
    header: 'Created',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

/** Returns what was tried. Null: nothing, or it is not among the busiest. */
function attemptsOf(webhookId: string, figures: Ranking) {
  const totals = figures.find(({ key }) => key === webhookId)?.webhooks
  return totals == null || totals.attempts === 0 ? null : totals
}

/** Returns how a webhook does, for the phone, where the figures have no room. Null: it is not known. */
function healthOf(webhookId: string, figures: Ranking): string | null {
  const totals = attemptsOf(webhookId, figures)
  if (totals === null) return figures.length < maxFigures ? 'No attempts since yesterday' : null
  const { attempts, failedAttempts, rates } = totals
  if (failedAttempts === 0) return 'None failed since yesterday'
  return `${failedAttempts === attempts ? 'All' : percentOf(rates.failure)} failed since yesterday`
}

/** The number of attempts, and the share of them that failed. */
function Attempts({ webhookId, figures }: { webhookId: string; figures: Ranking }) {
  const totals = attemptsOf(webhookId, figures)
  if (totals === null) {
    return <span className="dimmed">{figures.length < maxFigures ? 'No attempts' : '–'}</span>
  }
  const { attempts, failedAttempts, rates } = totals
  return (
    <>
      <span className="number">
        {countOf(attempts)} {attempts === 1 ? 'attempt' : 'attempts'}
      </span>
      <span className="second-line">{failedAttempts === 0 ? 'None failed' : `${percentOf(rates.failure)} failed`}</span>
    </>
  )
}

export function WebhookList() {
  const { mode, can, portal } = useScope()
  const list = useList('GET /v1/webhooks', {})
  const seesFigures = portal === null && can('statistics:read')
  const ranking = useGet(
    'GET /v1/statistics/ranking',
    { query: { by: 'webhook', since: daysAgo(1), limit: maxFigures } },
    { enabled: seesFigures, pollMs: () => pollMs },
  )
  const fault = unread(ranking, 'The figures since yesterday')
  const [isCreating, setCreating] = useState(false)
  const add = (variant: 'filled' | 'default') =>
    can('webhooks:write') && (
      <Button variant={variant} leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setCreating(true)}>
        Add webhook
      </Button>
    )
  return (
    <Screen
      title="Webhooks"
      subtitle={
        <>
          Your URLs that events are pushed to.
          {portal === null && (
            <>
              {' '}
              <ScreenLink to="/event-types">See the event types</ScreenLink>
            </>
          )}
        </>
      }
      action={add('filled')}
    >
      <DataTable
        label="Webhooks"
        list={list}
        columns={columnsWith(seesFigures ? ranking.data?.data : null)}
        keyOf={({ id }) => id}
        empty={
          <Empty
            title={portal === null ? `No webhooks in ${mode} mode yet` : 'No webhooks yet'}
            action={add('default')}
          >
            Add the URL of your program, and it hears of what happens: emails delivered or bounced, subscribers added.
          </Empty>
        }
      />
      {fault !== null && <Box mt="md">{fault}</Box>}
      {isCreating && <CreateWebhook onClose={() => setCreating(false)} />}
    </Screen>
  )
}
