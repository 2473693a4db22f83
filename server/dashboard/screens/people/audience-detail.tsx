import { Button, Group } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useChange, useFirstReading, useGet, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { actionsColumn } from '../../components/data-table.tsx'
import { DownloadButton } from '../../components/download-button.tsx'
import { Empty } from '../../components/empty.tsx'
import { Section } from '../../components/facts.tsx'
import { FilteredList } from '../../components/filtered-list.tsx'
import { given, useFilters } from '../../components/filters.ts'
import { LinkButton } from '../../components/link-button.tsx'
import { Loaded, Loading } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { AddPerson, type NewPerson } from './add-person.tsx'
import type { Audience } from './audience.ts'
import { AudienceSegments, useAudienceSegments } from './audience-segments.tsx'
import { type ContactAct, ContactDialog, type ContactNames } from './contact-dialogs.tsx'
import { ContactMenu } from './contact-menu.tsx'
import { DeleteAudience } from './delete-audience.tsx'
import { EditAudience } from './edit-audience.tsx'
import type { Contact } from './person.ts'
import { personColumns } from './person-columns.tsx'
import { PersonFilters, personSearchHint } from './person-filters.tsx'

/** One audience and the people on it. */
export function AudienceDetail() {
  const { id = '' } = useParams({ strict: false })
  const { can } = useScope()
  const query = useGet('GET /v1/audiences/:id', { params: { id } })
  const [act, setAct] = useState<'add' | 'edit' | 'delete' | null>(null)
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
              <>
                <Button variant="default" onClick={() => setAct('delete')}>
                  Delete
                </Button>
                <Button variant="default" onClick={() => setAct('edit')}>
                  Edit
                </Button>
              </>
            )}
            {can('contacts:write') && (
              <>
                <LinkButton variant="default" to="/imports/new" search={{ audience: id }}>
                  Import
                </LinkButton>
                <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setAct('add')}>
                  Add contact
                </Button>
              </>
            )}
          </Group>
        )
      }
    >
      <Loaded query={query} what="audience">
        {(read) => <Details audience={read} />}
      </Loaded>
      {act === 'add' && <AddContact audienceId={id} onClose={close} />}
      {act === 'edit' && audience && <EditAudience audience={audience} onClose={close} />}
      {act === 'delete' && audience && <DeleteAudience audience={audience} leadsTo="/audiences" onClose={close} />}
    </Screen>
  )
}

function Details({ audience }: { audience: Audience }) {
  const { can } = useScope()
  const { id, doubleOptIn } = audience
  const segments = useAudienceSegments(id)
  if (useFirstReading([segments])) return <Loading />
  return (
    <>
      <Copyable label="Copy the ID" value={id} />
      {doubleOptIn !== null && (
        <p className="dimmed">People who are added confirm first, by an email from {doubleOptIn.from}.</p>
      )}
      {can('segments:read') && <AudienceSegments audienceId={id} query={segments} />}
      <Section title="Contacts" action={can('contacts:read') && <ExportContacts audienceId={id} />}>
        <Contacts audience={audience} />
      </Section>
    </>
  )
}

function Contacts({ audience: { id: audienceId, name: audienceName } }: { audience: Audience }) {
  const { can } = useScope()
  const filters = useFilters(['search', 'status'])
  const { search, status } = filters.values
  const [asked, setAsked] = useState<{ act: ContactAct; contact: ContactNames } | null>(null)
  const list = useList('GET /v1/audiences/:audienceId/contacts', {
    params: { audienceId },
    query: given({ search, status: status as Contact['status'] | undefined }),
  })
  const columns = personColumns<Contact>(({ subscriberId }) => subscriberId)
  if (can('contacts:write')) {
    columns.push(
      actionsColumn('56px', ({ email, subscriberId, status }) => (
        <ContactMenu
          of={email}
          status={status}
          onChoose={(act) => setAsked({ act, contact: { audienceId, audienceName, subscriberId, email } })}
        />
      )),
    )
  }
  return (
    <>
      <FilteredList
        filters={filters}
        inputs={<PersonFilters filters={filters} ofContacts />}
        label="Contacts"
        list={list}
        columns={columns}
        keyOf={({ subscriberId }) => subscriberId}
        nothingFits={{ title: 'No contact fits these filters', hint: personSearchHint }}
        empty={
          <Empty title="No contacts yet">
            Add a contact here, import a file of them, or add people over the API when they sign up.
          </Empty>
        }
      />
      {asked !== null && <ContactDialog {...asked} onClose={() => setAsked(null)} />}
    </>
  )
}

/** Saves all contacts, whatever the filters of the list are. */
function ExportContacts({ audienceId }: { audienceId: string }) {
  const path = `/v1/audiences/${audienceId}/contacts/export`
  return <DownloadButton label="Export" path={path} fileName={`contacts-${audienceId}.csv`} />
}

function AddContact({ audienceId, onClose }: { audienceId: string; onClose: () => void }) {
  const add = useChange('POST /v1/audiences/:audienceId/contacts')
  const send = (body: NewPerson) => add.mutateAsync({ params: { audienceId }, body })
  return <AddPerson title="Add a contact" action="Add contact" send={send} onClose={onClose} />
}
