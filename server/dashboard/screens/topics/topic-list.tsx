import { Button, Menu } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { actionsColumn, type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { Time } from '../../components/time.tsx'
import { defaultLabels, type Topic } from './topic.ts'
import { CreateTopic, DeleteTopic, EditTopic } from './topic-dialogs.tsx'

const columns: readonly Column<Topic>[] = [
  {
    header: 'Name',
    cell: ({ name, description }) => (
      <>
        <div title={name}>{name}</div>
        {description !== null && (
          <div className="dimmed" title={description}>
            {description}
          </div>
        )}
      </>
    ),
  },
  { header: 'Who gets it', width: '140px', cell: (topic) => defaultLabels[topic.default].short },
  {
    header: 'Created',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

type Asked = { act: 'edit' | 'delete'; topic: Topic }

/** The topics that people may subscribe to or leave. Both modes share them. */
export function TopicList() {
  const { can, mode } = useScope()
  const list = useList('GET /v1/topics', {})
  const [isCreating, setCreating] = useState(false)
  const [asked, setAsked] = useState<Asked | null>(null)
  const close = () => setAsked(null)
  const mayWrite = can('topics:write')
  const isLive = mode === 'live'
  const actions = actionsColumn<Topic>('56px', (topic) => (
    <RowMenu of={topic.name}>
      <Menu.Item onClick={() => setAsked({ act: 'edit', topic })}>Edit</Menu.Item>
      <Menu.Item color="red" disabled={!isLive} onClick={() => setAsked({ act: 'delete', topic })}>
        {isLive ? 'Delete' : 'Delete (in live mode)'}
      </Menu.Item>
    </RowMenu>
  ))
  const create = (variant: 'filled' | 'default') =>
    mayWrite && (
      <Button variant={variant} leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setCreating(true)}>
        Create topic
      </Button>
    )
  return (
    <Screen
      title="Topics"
      subtitle="What people may subscribe to or leave, on the page behind the link to unsubscribe. Both modes share it."
      action={
        <>
          <LinkButton variant="default" to="/settings/brand">
            How that page looks
          </LinkButton>{' '}
          {create('filled')}
        </>
      }
    >
      <DataTable
        label="Topics"
        list={list}
        columns={mayWrite ? [...columns, actions] : columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No topics yet" action={create('default')}>
            Create one, such as Product news, and choose it in a campaign: people can then leave the topic instead of
            everything.
          </Empty>
        }
      />
      {isCreating && <CreateTopic onClose={() => setCreating(false)} />}
      {asked?.act === 'edit' && <EditTopic topic={asked.topic} onClose={close} />}
      {asked?.act === 'delete' && <DeleteTopic topic={asked.topic} onClose={close} />}
    </Screen>
  )
}
