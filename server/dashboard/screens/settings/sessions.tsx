import { Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { type RowOf, useChange, useList } from '../../api/hooks.ts'
import { Confirm } from '../../components/confirm.tsx'
import { actionsColumn, type Column, DataTable } from '../../components/data-table.tsx'
import { Screen } from '../../components/screen.tsx'
import { Time } from '../../components/time.tsx'
import { browserOf } from './browser-of.ts'

type ListedSession = RowOf<'GET /v1/sessions'>

/** Where the user is signed in. */
export function Sessions() {
  const list = useList('GET /v1/sessions', {})
  const end = useChange('DELETE /v1/sessions/:id')
  const endOthers = useChange('DELETE /v1/sessions')
  const [asked, setAsked] = useState<ListedSession | 'others' | null>(null)
  const hasOthers = (list.rows ?? []).some(({ isCurrent }) => !isCurrent)
  const columns: Column<ListedSession>[] = [
    {
      header: 'Browser',
      cell: ({ userAgent, isCurrent }) => (
        <>
          {browserOf(userAgent)}
          {isCurrent && <span className="second-line">This session</span>}
          {browserOf(userAgent) !== userAgent && <span className="second-line">{userAgent}</span>}
        </>
      ),
      phoneLine: ({ ipAddress, lastUsedAt, createdAt }) => (
        <>
          <span className="second-line mono">{ipAddress}</span>
          <span className="second-line">
            Last used: <Time at={lastUsedAt} />
          </span>
          <span className="second-line">
            Signed in: <Time at={createdAt} />
          </span>
        </>
      ),
    },
    {
      header: 'Address',
      width: '170px',
      isMinor: true,
      cell: ({ ipAddress }) => <span className="mono">{ipAddress}</span>,
    },
    { header: 'Last used', width: '140px', isMinor: true, cell: ({ lastUsedAt }) => <Time at={lastUsedAt} /> },
    { header: 'Signed in', width: '140px', isMinor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
    actionsColumn(
      '80px',
      (session) =>
        !session.isCurrent && (
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`End the session of ${browserOf(session.userAgent)}`}
            onClick={() => setAsked(session)}
          >
            End
          </Button>
        ),
    ),
  ]
  return (
    <Screen
      title="Sessions"
      subtitle="Where you are signed in. End those that you do not know, then change your password."
      action={
        hasOthers && (
          <Button variant="default" onClick={() => setAsked('others')}>
            End all others
          </Button>
        )
      }
    >
      <div className="wrapped">
        <DataTable label="Sessions" list={list} columns={columns} keyOf={({ id }) => id} empty={null} />
      </div>
      {asked === 'others' && (
        <Confirm
          title="End all other sessions?"
          action="End them"
          isRunning={endOthers.isPending}
          error={endOthers.error}
          onClose={() => setAsked(null)}
          onConfirm={() =>
            endOthers.mutate(
              {},
              {
                onSuccess: () => {
                  notifications.show({ message: 'All other sessions have ended.' })
                  setAsked(null)
                },
              },
            )
          }
        >
          You stay signed in here. Everywhere else you have to sign in again.
        </Confirm>
      )}
      {asked !== null && asked !== 'others' && (
        <Confirm
          title="End the session?"
          action="End it"
          isRunning={end.isPending}
          error={end.error}
          onClose={() => setAsked(null)}
          onConfirm={() => end.mutate({ params: { id: asked.id } }, { onSuccess: () => setAsked(null) })}
        >
          {browserOf(asked.userAgent)} at <span className="mono">{asked.ipAddress}</span> has to sign in again.
        </Confirm>
      )}
    </Screen>
  )
}
