import { Button, Menu } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { actionsColumn, type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { Time } from '../../components/time.tsx'
import { type Property, shownValue, typeLabels } from './property.ts'
import { ChangeFallback, DeclareProperty, DeleteProperty } from './property-dialogs.tsx'

const columns: readonly Column<Property>[] = [
  {
    header: 'Key',
    cell: ({ key }) => (
      <span className="mono" title={key}>
        {key}
      </span>
    ),
  },
  { header: 'Type', width: '110px', cell: ({ type }) => typeLabels[type] },
  {
    header: 'Fallback',
    isMinor: true,
    cell: ({ fallback }) =>
      fallback === null ? (
        <span className="dimmed">None</span>
      ) : (
        <span title={shownValue(fallback)}>{shownValue(fallback)}</span>
      ),
  },
  {
    header: 'Declared',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

/** The properties that the account keeps of people, beside names and addresses. Both modes share them. */
export function PropertyList() {
  const { can } = useScope()
  const query = useGet('GET /v1/contact-properties', {})
  const [isDeclaring, setDeclaring] = useState(false)
  const [asked, setAsked] = useState<{ act: 'change' | 'delete'; property: Property } | null>(null)
  const close = () => setAsked(null)
  const mayWrite = can('contacts:write')
  const actions = actionsColumn<Property>('56px', (property) => (
    <RowMenu of={property.key}>
      <Menu.Item onClick={() => setAsked({ act: 'change', property })}>Change the fallback</Menu.Item>
      <Menu.Item color="red" onClick={() => setAsked({ act: 'delete', property })}>
        Delete
      </Menu.Item>
    </RowMenu>
  ))
  const declare = (variant: 'filled' | 'default') =>
    mayWrite && (
      <Button variant={variant} leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setDeclaring(true)}>
        Declare property
      </Button>
    )
  return (
    <Screen
      title="Properties"
      subtitle="What you keep of people, beside names and addresses. Both modes share it."
      action={declare('filled')}
    >
      <DataTable
        label="Properties"
        list={{
          rows: query.data?.data,
          error: query.error,
          hasMore: false,
          isLoadingMore: false,
          isLooking: false,
          loadMore: () => undefined,
          retry: () => void query.refetch(),
          reload: () => void query.refetch(),
        }}
        columns={mayWrite ? [...columns, actions] : columns}
        keyOf={({ key }) => key}
        empty={
          <Empty title="No properties yet" action={declare('default')}>
            Declare one, such as plan or birthday: people can then have a value of it, which messages show and segments
            compare.
          </Empty>
        }
      />
      {isDeclaring && <DeclareProperty onClose={() => setDeclaring(false)} />}
      {asked?.act === 'change' && <ChangeFallback property={asked.property} onClose={close} />}
      {asked?.act === 'delete' && <DeleteProperty property={asked.property} onClose={close} />}
    </Screen>
  )
}
