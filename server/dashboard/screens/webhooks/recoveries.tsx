import { useState } from 'react'
import { type List, type RowOf, useGet, useList } from '../../api/hooks.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Section } from '../../components/facts.tsx'
import { State } from '../../components/state.tsx'
import { ExactTime, Time } from '../../components/time.tsx'
import { countOf } from '../overview/format.ts'

type Recovery = RowOf<'GET /v1/webhooks/:id/recoveries'>
export type RecoveryList = List<Recovery>

/** Recoveries that are shown at first, and added by "Show more". */
const limit = 5
/** Milliseconds between two looks at the one that runs, and for new ones. */
const pollMs = 2_000
const newMs = 5_000

/** Reads the recoveries of a webhook, newest first, and follows the running one: a webhook has one at most. */
export function useRecoveries(webhookId: string): RecoveryList {
  // What cannot be read at all is not asked for again and again.
  const [isRead, setRead] = useState(false)
  const list = useList(
    'GET /v1/webhooks/:id/recoveries',
    { params: { id: webhookId }, query: { limit } },
    { pollMs: isRead ? newMs : undefined },
  )
  if (!isRead && list.rows !== undefined) setRead(true)
  const running = list.rows?.find(({ status }) => status === 'running')
  const { data: latest } = useGet(
    'GET /v1/webhooks/:id/recoveries/:recoveryId',
    { params: { id: webhookId, recoveryId: running?.id ?? '' } },
    {
      enabled: running !== undefined,
      pollMs: (read) => (read === undefined || read.status === 'running' ? pollMs : false),
    },
  )
  return { ...list, rows: list.rows?.map((row) => (row === running && latest !== undefined ? latest : row)) }
}

const columns: readonly Column<Recovery>[] = [
  {
    header: 'Events',
    cell: ({ since, until, types }) => (
      <>
        {until === null ? 'Since' : 'From'} <ExactTime at={since} />
        {until !== null && (
          <>
            {' '}
            to <ExactTime at={until} />
          </>
        )}
        {types !== null && <span className="second-line mono wraps">{types.join(', ')}</span>}
      </>
    ),
    phoneLine: (recovery) => (
      <>
        {onTheirWay(recovery)}, started <Time at={recovery.createdAt} />
        {recovery.completedAt !== null && (
          <>
            , ended <Time at={recovery.completedAt} />
          </>
        )}
      </>
    ),
  },
  {
    header: 'State',
    width: '120px',
    cell: ({ status }) => (
      <>
        <State of={status} />
        {status === 'canceled' && <span className="second-line wraps">The webhook was disabled</span>}
      </>
    ),
  },
  {
    header: 'On their way',
    width: '170px',
    align: 'right',
    isMinor: true,
    cell: (recovery) => <span className="number">{onTheirWay(recovery)}</span>,
  },
  {
    header: 'Started',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
  {
    header: 'Ended',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ completedAt }) => <Time at={completedAt} none="Not yet" />,
  },
]

/** Returns how many deliveries were put on their way, of how many. */
function onTheirWay({ status, done, count, countIsExact }: Recovery): string {
  if (status === 'completed' && count === 0) return 'It had missed nothing'
  if (status === 'running' && count === 0) return 'Counting …'
  return `${countOf(done)} of ${countIsExact ? '' : 'at least '}${countOf(count)}`
}

/** The recoveries of a webhook: running and earlier ones. Nothing where there are none. */
export function Recoveries({ list }: { list: RecoveryList }) {
  if (list.rows?.length === 0) return null
  return (
    <Section title="Recoveries">
      <div className="wrapped">
        <DataTable label="Recoveries" list={list} columns={columns} keyOf={({ id }) => id} empty={null} />
      </div>
    </Section>
  )
}
