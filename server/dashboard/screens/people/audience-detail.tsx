import { Button, Group } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconPlus } from '@tabler/icons-react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { useChange, useGet, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { AddPerson, type NewPerson } from './add-person.tsx'
import { personColumns } from './person-columns.tsx'

type Audience = Result<'GET /v1/audiences/:id'>

/** One audience and the people on it. */
export function AudienceDetail() {
  const { id = '' } = useParams({ strict: false })
  const { can } = useScope()
  const query = useGet('GET /v1/audiences/:id', { params: { id } })
  const [act, setAct] = useState<'add' | 'delete' | null>(null)
  const { data: audience } = query
  const close = () => setAct(null)
  return (
    <Screen
      title={audience?.name ?? 'Audience'}
      parent={{ label: 'Audiences', path: '/audiences' }}
      subtitle={audience?.description ?? undefined}
      action={
        audience && (
          <Group gap="xs">
            {can('audiences:write') && (
              <Button variant="default" onClick={() => setAct('delete')}>
                Delete
              </Button>
            )}
            {can('contacts:write') && (
              <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setAct('add')}>
                Add contact
              </Button>
            )}
          </Group>
        )
      }
    >
      <Loaded query={query} what="audience">
        {() => (
          <>
            <Copyable label="Copy the ID" value={id} />
            <Section title="Contacts">
              <Contacts audienceId={id} />
            </Section>
          </>
        )}
      </Loaded>
      {act === 'add' && <AddContact audienceId={id} onClose={close} />}
      {act === 'delete' && audience && <DeleteAudience audience={audience} onClose={close} />}
    </Screen>
  )
}

function Contacts({ audienceId }: { audienceId: string }) {
  const list = useList('GET /v1/audiences/:audienceId/contacts', { params: { audienceId } })
  return (
    <DataTable
      label="Contacts"
      list={list}
      columns={personColumns}
      keyOf={({ subscriberId }) => subscriberId}
      empty={<Empty title="Nobody is on this list yet">Add a contact here, or over the API when people sign up.</Empty>}
    />
  )
}

function AddContact({ audienceId, onClose }: { audienceId: string; onClose: () => void }) {
  const add = useChange('POST /v1/audiences/:audienceId/contacts')
  const send = (body: NewPerson) => add.mutateAsync({ params: { audienceId }, body })
  return <AddPerson title="Add a contact" action="Add contact" send={send} onClose={onClose} />
}

function DeleteAudience({ audience: { id, name }, onClose }: { audience: Audience; onClose: () => void }) {
  const { path } = useScope()
  const navigate = useNavigate()
  const remove = useChange('DELETE /v1/audiences/:id')
  const onSuccess = () => {
    notifications.show({ message: `${name} was deleted.` })
    void navigate({ to: path('/audiences') })
  }
  return (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete the audience"
      typed={name}
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { id } }, { onSuccess })}
    >
      The list is gone with everybody’s membership. The subscribers stay.
    </Confirm>
  )
}
