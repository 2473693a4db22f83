import { ActionIcon, Button, Group, Menu, NativeSelect, Stack, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconDots, IconPlus } from '@tabler/icons-react'
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
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { nameOf } from './name-of.ts'

type Subscriber = RowOf<'GET /v1/subscribers'>

const statusOptions = [
  { value: '', label: 'All' },
  { value: 'active', label: 'Active' },
  { value: 'unsubscribed', label: 'Unsubscribed' },
]

const columns: readonly Column<Subscriber>[] = [
  { header: 'Email', cell: ({ email }) => <span title={email}>{email}</span>, phoneLine: nameOf },
  { header: 'Name', isMinor: true, cell: nameOf },
  { header: 'State', width: '140px', cell: ({ status }) => <State of={status} /> },
  { header: 'Added', width: '140px', align: 'right', isMinor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
]

/** The people of the account. Both modes share them. */
export function SubscriberList() {
  const { can } = useScope()
  const { values, set, clear, isSet } = useFilters(['email', 'status'])
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
  const actions: Column<Subscriber> = {
    header: 'Actions',
    isHeaderHidden: true,
    width: '56px',
    align: 'right',
    cell: (person) => (
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Actions for ${person.email}`}>
            <IconDots size={16} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {person.status === 'active' && (
            <Menu.Item onClick={() => setAsked({ act: 'unsubscribe', person })}>Unsubscribe</Menu.Item>
          )}
          <Menu.Item color="red" onClick={() => setAsked({ act: 'delete', person })}>
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    ),
  }
  return (
    <Screen title="Subscribers" subtitle="People, once per address. Both modes share them." action={add('filled')}>
      <Filters isSet={isSet}>
        <LateInput
          size="xs"
          className="wide"
          label="Email"
          placeholder="ada@example.org"
          value={values.email ?? ''}
          onCommit={(value) => set('email', value)}
        />
        <NativeSelect
          size="xs"
          label="State"
          data={statusOptions}
          value={values.status ?? ''}
          onChange={(event) => set('status', event.currentTarget.value)}
        />
      </Filters>
      <DataTable
        label="Subscribers"
        list={list}
        columns={mayWrite ? [...columns, actions] : columns}
        keyOf={({ id }) => id}
        empty={
          isSet ? (
            <Empty
              title="Nobody fits these filters"
              action={
                <Button variant="default" onClick={clear}>
                  Clear the filters
                </Button>
              }
            >
              The whole address is compared, in any letter case.
            </Empty>
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
  const { form, error, isRunning, submit } = useApiForm({
    initial: { email: '', firstName: '', lastName: '' },
    send: async ({ email, firstName, lastName }) => {
      const names = { ...(firstName !== '' && { firstName }), ...(lastName !== '' && { lastName }) }
      await create.mutateAsync({ body: { email, ...names } })
      onClose()
    },
  })
  return (
    <Dialog onClose={onClose} title="Add a subscriber">
      <form onSubmit={submit}>
        <Stack>
          {error !== null && <ErrorNotice error={error} />}
          <TextInput label="Email" type="email" required data-autofocus {...form.getInputProps('email')} />
          <TextInput label="First name" {...form.getInputProps('firstName')} />
          <TextInput label="Last name" {...form.getInputProps('lastName')} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isRunning}>
              Add subscriber
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
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
