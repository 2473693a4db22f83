import { Anchor, Button, Code, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { type RowOf, useChange, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { actionsColumn, type Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { TextFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { Screen } from '../../components/screen.tsx'
import { exactTime, Time } from '../../components/time.tsx'
import { CreatePortalSession } from './create-portal-session.tsx'

type PortalSession = RowOf<'GET /v1/portal-sessions'>

/** Milliseconds between two looks: sessions are opened and end while the list is shown. */
const pollMs = 5_000

const columns: readonly Column<PortalSession>[] = [
  {
    header: 'Customer',
    cell: ({ customer }) => <bdi title={customer}>{customer}</bdi>,
    phoneLine: ({ openedAt, expiresAt }) => (
      <>
        {openedAt === null ? 'Not opened yet' : 'Opened'}, ends <Time at={expiresAt} isAhead />
      </>
    ),
  },
  {
    header: 'Event types',
    isMinor: true,
    cell: ({ eventTypes }) =>
      eventTypes === null ? (
        'All'
      ) : (
        <span className="mono" title={eventTypes.join(', ')}>
          {eventTypes.join(', ')}
        </span>
      ),
  },
  {
    header: 'Opened',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ openedAt }) => <Time at={openedAt} none="Not yet" />,
  },
  {
    header: 'Ends',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ expiresAt }) => <Time at={expiresAt} isAhead />,
  },
  {
    header: 'Created',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

/** The open sessions of the portal in this mode: make a link, end a session. */
export function PortalSessions() {
  const { mode, can } = useScope()
  const filters = useFilters(['customer'])
  const { customer } = filters.values
  const list = useList('GET /v1/portal-sessions', { query: given({ customer }) }, { pollMs })
  const [isCreating, setCreating] = useState(false)
  const [ended, setEnded] = useState<PortalSession | null>(null)
  const mayWrite = can('webhooks:write')
  const create = (variant: 'filled' | 'default') =>
    mayWrite && (
      <Button variant={variant} leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setCreating(true)}>
        Create a link
      </Button>
    )
  const end = actionsColumn<PortalSession>('80px', (session) => (
    <Button
      size="compact-xs"
      variant="default"
      // A customer may have several.
      aria-label={`End the session of ${session.customer}, created ${exactTime(session.createdAt)}`}
      onClick={() => setEnded(session)}
    >
      End
    </Button>
  ))
  return (
    <Screen title="Customer portal" subtitle={`Open portal sessions in ${mode} mode`} action={create('filled')}>
      <FilteredList
        filters={filters}
        inputs={<TextFilter filters={filters} name="customer" label="Customer" isWide isExact placeholder="42" />}
        label="Portal sessions"
        list={list}
        columns={mayWrite ? [...columns, end] : columns}
        keyOf={({ id }) => id}
        nothingFits={{
          title: 'No session of this customer is open',
          hint: 'The customer is compared as a whole, as in the metadata of their webhooks.',
        }}
        empty={
          <Empty title={`No sessions are open in ${mode} mode`} action={create('default')}>
            In the portal, a customer of yours adds and tests their own webhooks and sees what was sent, in a frame of
            your site. Your server asks for a link each time: <Code>POST /v1/portal-sessions</Code>. See{' '}
            <Anchor href="/docs" target="_blank" underline="always">
              the API reference
            </Anchor>
            .
          </Empty>
        }
      />
      {isCreating && <CreatePortalSession customer={customer ?? ''} onClose={() => setCreating(false)} />}
      {ended !== null && <EndSession session={ended} onClose={() => setEnded(null)} onGone={list.reload} />}
    </Screen>
  )
}

type EndProps = {
  session: PortalSession
  onClose: () => void
  /** The session had ended before. */
  onGone: () => void
}

function EndSession({ session, onClose, onGone }: EndProps) {
  const { id, customer, openedAt } = session
  const end = useChange('DELETE /v1/portal-sessions/:id')
  const finish = () => {
    notifications.show({ message: 'The session has ended.' })
    onClose()
  }
  return (
    <Confirm
      title="End this session?"
      action="End the session"
      isRunning={end.isPending}
      error={end.error}
      onClose={onClose}
      onConfirm={() =>
        end.mutate(
          { params: { id } },
          {
            onSuccess: finish,
            onError: ({ status }) => {
              if (status !== 404) return
              onGone()
              finish()
            },
          },
        )
      }
    >
      <Text fw={500} lineClamp={3} dir="auto" className="breaks" mb="xs">
        {customer}
      </Text>
      {openedAt === null
        ? 'The link no longer works. The webhooks stay, and your site can show the portal with a new link.'
        : 'The portal no longer shows their webhooks. The webhooks stay, and your site can show them with a new link.'}
    </Confirm>
  )
}
