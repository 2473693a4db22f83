import { Button, NativeSelect } from '@mantine/core'
import { useState } from 'react'
import { type RowOf, useChange, useChoices, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { actionsColumn, type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Section } from '../../components/facts.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { newestOffered } from '../../components/newest-offered.ts'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { unread } from '../../components/unread.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { type ContactAct, ContactDialog, type ContactNames } from './contact-dialogs.tsx'
import { ContactMenu } from './contact-menu.tsx'
import type { Subscriber } from './person.ts'

type Membership = RowOf<'GET /v1/subscribers/:id/contacts'>

const columns: readonly Column<Membership>[] = [
  {
    header: 'Audience',
    cell: ({ audienceId, audienceName }) => <ScreenLink to={`/audiences/${audienceId}`}>{audienceName}</ScreenLink>,
  },
  { header: 'State', width: '140px', cell: ({ status }) => <State of={status} /> },
  { header: 'Added', width: '140px', align: 'right', isMinor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    header: 'Changed',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ updatedAt }) => <Time at={updatedAt} />,
  },
]

/** The audiences that a person is in. */
export function SubscriberAudiences({ subscriber }: { subscriber: Subscriber }) {
  const { can } = useScope()
  const { id: subscriberId, email } = subscriber
  const list = useList('GET /v1/subscribers/:id/contacts', { params: { id: subscriberId } })
  const [isAdding, setAdding] = useState(false)
  const [asked, setAsked] = useState<{ act: ContactAct; contact: ContactNames } | null>(null)
  const mayWrite = can('contacts:write')
  const actions = actionsColumn<Membership>('56px', ({ audienceId, audienceName, status }) => (
    <ContactMenu
      of={audienceName}
      status={status}
      onChoose={(act) => setAsked({ act, contact: { audienceId, audienceName, subscriberId, email } })}
    />
  ))
  const add = mayWrite && can('audiences:read') && (
    <Button size="xs" variant="default" onClick={() => setAdding(true)}>
      Add to an audience
    </Button>
  )
  return (
    <Section title="Audiences" action={add}>
      <DataTable
        label="Audiences"
        list={list}
        columns={mayWrite ? [...columns, actions] : columns}
        keyOf={({ audienceId }) => audienceId}
        empty={
          <Empty title="In no audience yet">
            Audiences are lists of people to write to. Add this person to one here, or over the API.
          </Empty>
        }
      />
      {isAdding && <AddToAudience email={email} onClose={() => setAdding(false)} />}
      {asked !== null && <ContactDialog {...asked} onClose={() => setAsked(null)} />}
    </Section>
  )
}

function AddToAudience({ email, onClose }: { email: string; onClose: () => void }) {
  const audiences = useChoices('GET /v1/audiences', { query: {} })
  const fault = unread(audiences, 'The audiences')
  const add = useChange('POST /v1/audiences/:audienceId/contacts')
  const { form, ...sending } = useApiForm({
    initial: { audienceId: '' },
    check: ({ audienceId }) => (audienceId === '' ? { audienceId: 'Choose an audience' } : {}),
    send: async ({ audienceId }) => {
      await add.mutateAsync({ params: { audienceId }, body: { email } })
      onClose()
    },
  })
  return (
    <FormDialog title={`Add ${email} to an audience`} action="Add to the audience" {...sending} onClose={onClose}>
      <NativeSelect
        label="Audience"
        description={newestOffered(audiences)}
        data-autofocus
        data={[
          { value: '', label: 'Choose one' },
          ...(audiences.data?.map(({ id, name }) => ({ value: id, label: name })) ?? []),
        ]}
        {...form.getInputProps('audienceId')}
        {...(fault !== null && { error: fault })}
      />
    </FormDialog>
  )
}
