import { Button, TextInput } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { useChange, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { actionsColumn, type Column } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { SelectFilter, TextFilter } from '../../components/filter-inputs.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { FormDialog } from '../../components/form-dialog.tsx'
import { OnlyLive } from '../../components/only-live.tsx'
import { Screen } from '../../components/screen.tsx'
import { Time } from '../../components/time.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { RemoveSuppression, type Suppression, SuppressionSource, suppressionReasons } from './suppression.tsx'

const reasonOptions = Object.entries(suppressionReasons).map(([value, label]) => ({ value, label }))

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
      {mode === 'live' ? (
        <LiveList />
      ) : (
        <OnlyLive title="Suppressions are shown in live mode" path="/suppressions">
          Test mode sends no email. It learns of no bounces and does not read this list.
        </OnlyLive>
      )}
      {isAdding && <AddSuppression onClose={() => setAdding(false)} />}
    </Screen>
  )
}

function LiveList() {
  const { can } = useScope()
  const filters = useFilters(['search', 'reason'])
  const { search, reason } = filters.values
  const [removed, setRemoved] = useState<Suppression | null>(null)
  const mayWrite = can('suppressions:write')
  const list = useList('GET /v1/suppressions', {
    query: given({ search, reason: reason as Suppression['reason'] | undefined }),
  })
  const columns: Column<Suppression>[] = [
    {
      header: 'Address',
      cell: ({ address }) => <span title={address}>{address}</span>,
      phoneLine: ({ reason }) => suppressionReasons[reason],
    },
    { header: 'Why', width: '140px', isMinor: true, cell: ({ reason }) => suppressionReasons[reason] },
    {
      header: 'Learned from',
      isMinor: true,
      cell: (entry) => <SuppressionSource of={entry} />,
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
    columns.push(
      actionsColumn('100px', (entry) => (
        <Button
          size="compact-xs"
          variant="default"
          aria-label={`Remove ${entry.address}`}
          onClick={() => setRemoved(entry)}
        >
          Remove
        </Button>
      )),
    )
  }
  return (
    <>
      <FilteredList
        filters={filters}
        inputs={
          <>
            <TextFilter filters={filters} name="search" label="Search" isWide placeholder="Address" />
            <SelectFilter filters={filters} name="reason" label="Why" options={reasonOptions} />
          </>
        }
        label="Suppressions"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        nothingFits={{
          title: 'No address fits these filters',
          hint: 'The search compares how addresses begin. An address that is not on the list is written to.',
        }}
        empty={
          <Empty title="No suppressed addresses">
            Addresses that bounce for good, and people who complain or unsubscribe, come here by themselves.
          </Empty>
        }
      />
      {removed !== null && <RemoveSuppression entry={removed} onClose={() => setRemoved(null)} />}
    </>
  )
}

function AddSuppression({ onClose }: { onClose: () => void }) {
  const create = useChange('POST /v1/suppressions')
  const { form, ...sending } = useApiForm({
    initial: { address: '' },
    send: async (body) => {
      await create.mutateAsync({ body })
      onClose()
    },
  })
  return (
    <FormDialog title="Suppress an address" action="Suppress it" {...sending} onClose={onClose}>
      <TextInput
        label="Address"
        description="No email is sent to it any more."
        required
        data-autofocus
        {...form.getInputProps('address')}
      />
    </FormDialog>
  )
}
