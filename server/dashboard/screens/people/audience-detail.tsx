import { Button, Group, Stack, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconPlus } from '@tabler/icons-react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { type RowOf, useChange, useGet, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Empty } from '../../components/empty.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { nameOf } from './name-of.ts'

type Audience = Result<'GET /v1/audiences/:id'>
type Contact = RowOf<'GET /v1/audiences/:audienceId/contacts'>

const columns: readonly Column<Contact>[] = [
  { header: 'Email', cell: ({ email }) => <span title={email}>{email}</span>, phoneLine: nameOf },
  { header: 'Name', isMinor: true, cell: nameOf },
  { header: 'State', width: '140px', cell: ({ status }) => <State of={status} /> },
  { header: 'Added', width: '140px', align: 'right', isMinor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
]

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
      columns={columns}
      keyOf={({ subscriberId }) => subscriberId}
      empty={<Empty title="Nobody is on this list yet">Add a contact here, or over the API when people sign up.</Empty>}
    />
  )
}

function AddContact({ audienceId, onClose }: { audienceId: string; onClose: () => void }) {
  const add = useChange('POST /v1/audiences/:audienceId/contacts')
  const { form, error, isRunning, submit } = useApiForm({
    initial: { email: '', firstName: '', lastName: '' },
    send: async ({ email, firstName, lastName }) => {
      const names = { ...(firstName !== '' && { firstName }), ...(lastName !== '' && { lastName }) }
      await add.mutateAsync({ params: { audienceId }, body: { email, ...names } })
      onClose()
    },
  })
  return (
    <Dialog onClose={onClose} title="Add a contact">
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
              Add contact
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
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
