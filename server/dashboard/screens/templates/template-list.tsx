import { Button, Menu } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { actionsColumn, type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { CreateTemplate } from './create-template.tsx'
import { DeleteTemplate } from './delete-template.tsx'
import { publicationOf, type TemplateSummary, versionOf } from './template.ts'

const columns: readonly Column<TemplateSummary>[] = [
  {
    header: 'Name',
    cell: ({ id, name, subject }) => (
      <>
        <ScreenLink to={`/templates/${id}`} title={name}>
          {name}
        </ScreenLink>
        <span className="second-line" title={subject}>
          {subject}
        </span>
      </>
    ),
  },
  {
    header: 'State',
    width: '170px',
    cell: (template) => (
      <>
        <State of={publicationOf(template)} />
        <span className="second-line">{versionOf(template)}</span>
      </>
    ),
  },
  {
    header: 'Published',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ publishedAt }) => <Time at={publishedAt} />,
  },
  {
    header: 'Changed',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ updatedAt }) => <Time at={updatedAt} />,
  },
]

/** The templates of the account. Both modes share them. */
export function TemplateList() {
  const { can, mode } = useScope()
  const list = useList('GET /v1/templates', {})
  const [isCreating, setCreating] = useState(false)
  const [deleted, setDeleted] = useState<TemplateSummary | null>(null)
  const mayWrite = can('templates:write')
  const isLive = mode === 'live'
  const actions = actionsColumn<TemplateSummary>('56px', (template) => (
    <RowMenu of={template.name}>
      <Menu.Item color="red" disabled={!isLive} onClick={() => setDeleted(template)}>
        {isLive ? 'Delete' : 'Delete (in live mode)'}
      </Menu.Item>
    </RowMenu>
  ))
  const create = (variant: 'filled' | 'default') =>
    mayWrite && (
      <Button variant={variant} leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setCreating(true)}>
        Create template
      </Button>
    )
  return (
    <Screen
      title="Templates"
      subtitle="Messages that are written once and sent often. Both modes share them."
      action={create('filled')}
    >
      <DataTable
        label="Templates"
        list={list}
        columns={mayWrite ? [...columns, actions] : columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No templates yet" action={create('default')}>
            Write a message here, with variables for what differs, and send it over the API by its ID: your program then
            holds no HTML.
          </Empty>
        }
      />
      {isCreating && <CreateTemplate onClose={() => setCreating(false)} />}
      {deleted !== null && <DeleteTemplate template={deleted} onClose={() => setDeleted(null)} />}
    </Screen>
  )
}
