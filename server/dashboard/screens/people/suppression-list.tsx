import { Button, Group, NativeSelect, Stack, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconPlus } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type RowOf, useChange, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Empty } from '../../components/empty.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Filters } from '../../components/filter-bar.tsx'
import { useFilters } from '../../components/filters.ts'
import { LateInput } from '../../components/late-input.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { wordOf } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { useApiForm } from '../../components/use-api-form.ts'

type Suppression = RowOf<'GET /v1/suppressions'>

const reasons: Readonly<Record<Suppression['reason'], string>> = {
  hard_bounce: 'Hard bounce',
  complaint: 'Complaint',
  unsubscribe: 'Unsubscribed',
  manual: 'Added by hand',
}

const reasonOptions = [
  { value: '', label: 'All' },
  ...Object.entries(reasons).map(([value, label]) => ({ value, label })),
]

/** Addresses that are not written to. */
export function SuppressionList() {
  const { mode, can } = useScope()
  const [isAdding, setAdding] = useState(false)
  const add = can('suppressions:write') && mode === 'live' && (
    <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setAdding(true)}>
      Suppress an address
    </Button>
  )
  return (
    <Screen title="Suppressions" subtitle="Addresses that are not written to." action={add}>
      {mode === 'live' ? <LiveList /> : <OnlyLive />}
      {isAdding && <AddSuppression onClose={() => setAdding(false)} />}
    </Screen>
  )
}

function OnlyLive() {
  const { account } = useScope()
  const navigate = useNavigate()
  return (
    <Empty
      title="Suppressions are shown in live mode"
      action={
        <Button onClick={() => void navigate({ to: `/${account.id}/live/suppressions` })}>Switch to live mode</Button>
      }
    >
      Test mode writes to nobody, so it neither learns of bounces nor heeds this list.
    </Empty>
  )
}

function LiveList() {
  const { can } = useScope()
  const { values, set, clear, isSet } = useFilters(['address', 'reason'])
  const [removed, setRemoved] = useState<Suppression | null>(null)
  const mayWrite = can('suppressions:write')
  const list = useList('GET /v1/suppressions', {
    query: {
      ...(values.address !== undefined && { address: values.address }),
      ...(values.reason !== undefined && { reason: values.reason as Suppression['reason'] }),
    },
  })
  const columns: Column<Suppression>[] = [
    {
      header: 'Address',
      cell: ({ address }) => <span title={address}>{address}</span>,
      phoneLine: ({ reason }) => reasons[reason],
    },
    { header: 'Why', width: '140px', isMinor: true, cell: ({ reason }) => reasons[reason] },
    {
      header: 'Learned from',
      isMinor: true,
      cell: ({ source, emailId }) =>
        emailId === null ? wordOf(source) : <ScreenLink to={`/emails/${emailId}`}>{wordOf(source)}</ScreenLink>,
    },
    {
      header: 'Since',
      width: '140px',
      align: 'right',
      isMinor: true,
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
  ]
  if (mayWrite) {
    columns.push({
      header: 'Actions',
      isHeaderHidden: true,
      width: '100px',
      align: 'right',
      cell: (entry) => (
        <Button
          size="compact-xs"
          variant="default"
          aria-label={`Remove ${entry.address}`}
          onClick={() => setRemoved(entry)}
        >
          Remove
        </Button>
      ),
    })
  }
  return (
    <>
      <Filters isSet={isSet}>
        <LateInput
          size="xs"
          className="wide"
          label="Address"
          placeholder="ada@example.org"
          value={values.address ?? ''}
          onCommit={(value) => set('address', value)}
        />
        <NativeSelect
          size="xs"
          label="Why"
          data={reasonOptions}
          value={values.reason ?? ''}
          onChange={(event) => set('reason', event.currentTarget.value)}
        />
      </Filters>
      <DataTable
        label="Suppressions"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          isSet ? (
            <Empty
              title="No address fits these filters"
              action={
                <Button variant="default" onClick={clear}>
                  Clear the filters
                </Button>
              }
            >
              So it is written to.
            </Empty>
          ) : (
            <Empty title="No suppressed addresses">
              Addresses that bounce for good, and people who complain or unsubscribe, come here by themselves.
            </Empty>
          )
        }
      />
      {removed !== null && <RemoveSuppression entry={removed} onClose={() => setRemoved(null)} />}
    </>
  )
}

function AddSuppression({ onClose }: { onClose: () => void }) {
  const create = useChange('POST /v1/suppressions')
  const { form, error, isRunning, submit } = useApiForm({
    initial: { address: '' },
    send: async (body) => {
      await create.mutateAsync({ body })
      onClose()
    },
  })
  return (
    <Dialog onClose={onClose} title="Suppress an address">
      <form onSubmit={submit}>
        <Stack>
          {error !== null && <ErrorNotice error={error} />}
          <TextInput
            label="Address"
            description="No email is sent to it any more."
            required
            data-autofocus
            {...form.getInputProps('address')}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isRunning}>
              Suppress it
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}

function RemoveSuppression({ entry: { address, reason }, onClose }: { entry: Suppression; onClose: () => void }) {
  const remove = useChange('DELETE /v1/suppressions/:address')
  const onSuccess = () => {
    notifications.show({ message: `${address} is written to again.` })
    onClose()
  }
  return (
    <Confirm
      title={`Write to ${address} again?`}
      action="Remove it from the list"
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { address } }, { onSuccess })}
    >
      It is here because: {reasons[reason].toLowerCase()}. Emails that bounce again, and people who complain again, harm
      how your other emails arrive.
    </Confirm>
  )
}
