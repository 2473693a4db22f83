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
  const [isAsked, setAsked] = useState(false)
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
      ({ id, isCurrent, userAgent }) =>
        !isCurrent && (
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`End the session of ${browserOf(userAgent)}`}
            loading={end.isPending && end.variables.params.id === id}
            onClick={() => end.mutate({ params: { id } })}
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
          <Button variant="default" onClick={() => setAsked(true)}>
            End all others
          </Button>
        )
      }
    >
      <div className="wrapped">
        <DataTable label="Sessions" list={list} columns={columns} keyOf={({ id }) => id} empty={null} />
      </div>
      {isAsked && (
        <Confirm
          title="End all other sessions?"
          action="End them"
          isRunning={endOthers.isPending}
          error={endOthers.error}
          onClose={() => setAsked(false)}
          onConfirm={() =>
            endOthers.mutate(
              {},
              {
                onSuccess: () => {
                  notifications.show({ message: 'All other sessions have ended.' })
                  setAsked(false)
                },
              },
            )
          }
        >
          You stay signed in here. Everywhere else you have to sign in again.
        </Confirm>
      )}
    </Screen>
  )
}
