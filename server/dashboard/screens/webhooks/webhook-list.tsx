import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { type RowOf, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { CreateWebhook } from './create-webhook.tsx'
import { disabledReasons } from './disabled-reasons.ts'

type Webhook = RowOf<'GET /v1/webhooks'>

const columns: readonly Column<Webhook>[] = [
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
  },
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

export function WebhookList() {
  const { mode, can, portal } = useScope()
  const list = useList('GET /v1/webhooks', {})
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
        columns={columns}
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
      {isCreating && <CreateWebhook onClose={() => setCreating(false)} />}
    </Screen>
  )
}
