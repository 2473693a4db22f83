import { Button, TextInput } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type RowOf, useChange, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { useApiForm } from '../../components/use-api-form.ts'

const columns: readonly Column<RowOf<'GET /v1/domains'>>[] = [
  { header: 'Domain', cell: ({ id, name }) => <ScreenLink to={`/domains/${id}`}>{name}</ScreenLink> },
  { header: 'State', width: '130px', cell: ({ status }) => <State of={status} /> },
  {
    header: 'Last checked',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ lastCheckedAt }) => <Time at={lastCheckedAt} none="Not yet" />,
  },
  { header: 'Added', width: '140px', align: 'right', cell: ({ createdAt }) => <Time at={createdAt} /> },
]

/** The domains to send from. Both modes share them. */
export function DomainList() {
  const { can } = useScope()
  const list = useList('GET /v1/domains', {})
  const [isAdding, setAdding] = useState(false)
  const add = (variant: 'filled' | 'default') =>
    can('domains:write') && (
      <Button variant={variant} leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setAdding(true)}>
        Add domain
      </Button>
    )
  return (
    <Screen title="Domains" subtitle="Names to send from. Both modes share them." action={add('filled')}>
      <DataTable
        label="Domains"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No domains yet" action={add('default')}>
            Add the domain that your emails come from, and publish its records in the DNS. Live emails need it.
          </Empty>
        }
      />
      {isAdding && <AddDomain onClose={() => setAdding(false)} />}
    </Screen>
  )
}

function AddDomain({ onClose }: { onClose: () => void }) {
  const { path } = useScope()
  const navigate = useNavigate()
  const create = useChange('POST /v1/domains')
  const { form, ...sending } = useApiForm({
    initial: { name: '', returnPath: '' },
    send: async ({ name, returnPath }) => {
      const { id } = await create.mutateAsync({ body: { name, ...(returnPath !== '' && { returnPath }) } })
      onClose()
      await navigate({ to: path(`/domains/${id}`) })
    },
  })
  return (
    <FormDialog title="Add a domain" action="Add domain" {...sending} onClose={onClose}>
      <TextInput
        label="Domain"
        description="What stands after the @ of the sender."
        placeholder="example.com"
        required
        data-autofocus
        spellCheck={false}
        {...form.getInputProps('name')}
      />
      <TextInput
        label="Return path"
        description="The name below the domain that bounces go to. May be empty: send."
        placeholder="send"
        spellCheck={false}
        {...form.getInputProps('returnPath')}
      />
    </FormDialog>
  )
}
