import { Button, Menu } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { type RowOf, useChange, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { actionsColumn, DataTable } from '../../components/data-table.tsx'
import { Empty, NothingFits } from '../../components/empty.tsx'
import { Filters } from '../../components/filter-bar.tsx'
import { SelectFilter, TextFilter } from '../../components/filter-inputs.tsx'
import { useFilters } from '../../components/filters.ts'
import { RowMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { AddPerson, type NewPerson } from './add-person.tsx'
import { personColumns } from './person-columns.tsx'

type Subscriber = RowOf<'GET /v1/subscribers'>

const statusOptions = [
  { value: 'active', label: 'Active' },
  { value: 'unsubscribed', label: 'Unsubscribed' },
]

/** The people of the account. Both modes share them. */
export function SubscriberList() {
  const { can } = useScope()
  const filters = useFilters(['email', 'status'])
  const { values, clear, isSet } = filters
  const [isAdding, setAdding] = useState(false)
  const [asked, setAsked] = useState<{ act: 'unsubscribe' | 'delete'; person: Subscriber } | null>(null)
  const list = useList('GET /v1/subscribers', {
    query: {
      ...(values.email !== undefined && { email: values.email }),
      ...(values.status !== undefined && { status: values.status as Subscriber['status'] }),
    },
  })
  const mayWrite = can('subscribers:write')
  const add = (variant: 'filled' | 'default') =>
    mayWrite && (
      <Button variant={variant} leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setAdding(true)}>
        Add subscriber
      </Button>
    )
  const actions = actionsColumn<Subscriber>('56px', (person) => (
    <RowMenu of={person.email}>
      {person.status === 'active' && (
        <Menu.Item onClick={() => setAsked({ act: 'unsubscribe', person })}>Unsubscribe</Menu.Item>
      )}
      <Menu.Item color="red" onClick={() => setAsked({ act: 'delete', person })}>
        Delete
      </Menu.Item>
    </RowMenu>
  ))
  return (
    <Screen title="Subscribers" subtitle="People, once per address. Both modes share them." action={add('filled')}>
      <Filters isSet={isSet}>
        <TextFilter filters={filters} name="email" label="Email" isWide placeholder="ada@example.org" />
        <SelectFilter filters={filters} name="status" label="State" options={statusOptions} />
      </Filters>
      <DataTable
        label="Subscribers"
        list={list}
        columns={mayWrite ? [...personColumns, actions] : personColumns}
        keyOf={({ id }) => id}
        empty={
          isSet ? (
            <NothingFits title="Nobody fits these filters" onClear={clear}>
              The whole address is compared, in any letter case.
            </NothingFits>
          ) : (
            <Empty title="No subscribers yet" action={add('default')}>
              Add people here, or over the API when they sign up.
            </Empty>
          )
        }
      />
      {isAdding && <AddSubscriber onClose={() => setAdding(false)} />}
      {asked?.act === 'unsubscribe' && <Unsubscribe person={asked.person} onClose={() => setAsked(null)} />}
      {asked?.act === 'delete' && <DeleteSubscriber person={asked.person} onClose={() => setAsked(null)} />}
    </Screen>
  )
}

function AddSubscriber({ onClose }: { onClose: () => void }) {
  const create = useChange('POST /v1/subscribers')
  const send = (body: NewPerson) => create.mutateAsync({ body })
  return <AddPerson title="Add a subscriber" action="Add subscriber" send={send} onClose={onClose} />
}

type AskProps = { person: Subscriber; onClose: () => void }

function Unsubscribe({ person: { id, email }, onClose }: AskProps) {
  const unsubscribe = useChange('POST /v1/subscribers/:id/unsubscribe')
  return (
    <Confirm
      title={`Unsubscribe ${email}?`}
      action="Unsubscribe"
      isRunning={unsubscribe.isPending}
      error={unsubscribe.error}
      onClose={onClose}
      onConfirm={() => unsubscribe.mutate({ params: { id } }, { onSuccess: onClose })}
    >
      {email} gets no more email to audiences. Only do this when the person asked for it.
    </Confirm>
  )
}

function DeleteSubscriber({ person: { id, email }, onClose }: AskProps) {
  const remove = useChange('DELETE /v1/subscribers/:id')
  const onSuccess = () => {
    notifications.show({ message: `${email} was deleted.` })
    onClose()
  }
  return (
    <Confirm
      title={`Delete ${email}?`}
      action="Delete the subscriber"
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { id } }, { onSuccess })}
    >
      The person leaves every audience, and it is forgotten whether they unsubscribed.
    </Confirm>
  )
}
