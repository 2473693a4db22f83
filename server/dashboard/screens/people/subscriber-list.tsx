import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { useChange, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { actionsColumn } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { RowMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { AddPerson, type NewPerson } from './add-person.tsx'
import type { Subscriber } from './person.ts'
import { personColumns } from './person-columns.tsx'
import { PersonFilters, personSearchHint } from './person-filters.tsx'
import { type SubscriberAct, SubscriberDialog } from './subscriber-dialogs.tsx'
import { SubscriberMenu } from './subscriber-menu.tsx'

/** The people of the account. Both modes share them. */
export function SubscriberList() {
  const { can } = useScope()
  const filters = useFilters(['search', 'status'])
  const { search, status } = filters.values
  const [isAdding, setAdding] = useState(false)
  const [asked, setAsked] = useState<{ act: SubscriberAct; subscriber: Subscriber } | null>(null)
  const list = useList('GET /v1/subscribers', {
    query: given({ search, status: status as Subscriber['status'] | undefined }),
  })
  const mayWrite = can('subscribers:write')
  const add = (variant: 'filled' | 'default') =>
    mayWrite && (
      <Button variant={variant} leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setAdding(true)}>
        Add subscriber
      </Button>
    )
  const columns = personColumns<Subscriber>(({ id }) => id)
  if (mayWrite) {
    columns.push(
      actionsColumn('56px', (subscriber) => (
        <RowMenu of={subscriber.email}>
          <SubscriberMenu subscriber={subscriber} onChoose={(act) => setAsked({ act, subscriber })} />
        </RowMenu>
      )),
    )
  }
  return (
    <Screen title="Subscribers" subtitle="People, once per address. Both modes share them." action={add('filled')}>
      <FilteredList
        filters={filters}
        inputs={<PersonFilters filters={filters} />}
        label="Subscribers"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        nothingFits={{ title: 'No subscriber fits these filters', hint: personSearchHint }}
        empty={
          <Empty title="No subscribers yet" action={add('default')}>
            Add people here, or over the API when they sign up.
          </Empty>
        }
      />
      {isAdding && <AddSubscriber onClose={() => setAdding(false)} />}
      {asked !== null && <SubscriberDialog {...asked} onClose={() => setAsked(null)} />}
    </Screen>
  )
}

function AddSubscriber({ onClose }: { onClose: () => void }) {
  const create = useChange('POST /v1/subscribers')
  const send = (body: NewPerson) => create.mutateAsync({ body })
  return <AddPerson title="Add a subscriber" action="Add subscriber" send={send} onClose={onClose} />
}
