import { IconUpload } from '@tabler/icons-react'
import { useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { countOf, type Import, nameOfImport } from './import.ts'

const columns: readonly Column<Import>[] = [
  {
    header: 'File',
    cell: (row) => (
      <ScreenLink to={`/imports/${row.id}`} title={nameOfImport(row)}>
        {nameOfImport(row)}
      </ScreenLink>
    ),
    phoneLine: ({ createdAt }) => <Time at={createdAt} />,
  },
  { header: 'State', width: '120px', cell: ({ status }) => <State of={status} /> },
  { header: 'Rows', width: '110px', align: 'right', isMinor: true, cell: ({ rowsRead }) => countOf(rowsRead) },
  { header: 'Failed', width: '110px', align: 'right', isMinor: true, cell: ({ failed }) => countOf(failed) },
  { header: 'Begun', width: '140px', align: 'right', isMinor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
]

/** Milliseconds between two looks for what has changed. */
const pollMs = 3_000

/** The files of contacts that were imported, newest first. */
export function ImportList() {
  const { mode, can } = useScope()
  const list = useList('GET /v1/imports', {}, { pollMs })
  const start = (variant: 'filled' | 'default') =>
    can('contacts:write') && (
      <LinkButton to="/imports/new" variant={variant} leftSection={<IconUpload size={16} aria-hidden />}>
        Import contacts
      </LinkButton>
    )
  return (
    <Screen title="Imports" subtitle={`Files of contacts that were imported in ${mode} mode.`} action={start('filled')}>
      <DataTable
        label="Imports"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title={`No imports in ${mode} mode yet`} action={start('default')}>
            Import the people of another service from a CSV file or a ZIP. Exports of Mailchimp and Listmonk are known.
          </Empty>
        }
      />
    </Screen>
  )
}
