import { Button, Menu } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useChange, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { actionsColumn, type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { Time } from '../../components/time.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import type { Audience } from './audience.ts'
import { AudienceFields, audiencePaths, audienceValues, doubleOptInOf } from './audience-fields.tsx'
import { DeleteAudience } from './delete-audience.tsx'
import { EditAudience } from './edit-audience.tsx'

const columns: readonly Column<Audience>[] = [
  { header: 'Name', cell: ({ id, name }) => <ScreenLink to={`/audiences/${id}`}>{name}</ScreenLink> },
  { header: 'Description', isMinor: true, cell: ({ description }) => description ?? '–' },
  { header: 'Created', width: '140px', align: 'right', cell: ({ createdAt }) => <Time at={createdAt} /> },
]

/** The lists of people. Both modes share them. */
export function AudienceList() {
  const { can } = useScope()
  const list = useList('GET /v1/audiences', {})
  const [isCreating, setCreating] = useState(false)
  const [asked, setAsked] = useState<{ act: 'edit' | 'delete'; audience: Audience } | null>(null)
  const close = () => setAsked(null)
  const actions = actionsColumn<Audience>('56px', (audience) => (
    <RowMenu of={audience.name}>
      <Menu.Item onClick={() => setAsked({ act: 'edit', audience })}>Edit</Menu.Item>
      <Menu.Item color="red" onClick={() => setAsked({ act: 'delete', audience })}>
        Delete
      </Menu.Item>
    </RowMenu>
  ))
  const create = (variant: 'filled' | 'default') =>
    can('audiences:write') && (
      <Button variant={variant} leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setCreating(true)}>
        Create audience
      </Button>
    )
  return (
    <Screen title="Audiences" subtitle="Lists of people to write to. Both modes share them." action={create('filled')}>
      <DataTable
        label="Audiences"
        list={list}
        columns={can('audiences:write') ? [...columns, actions] : columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No audiences yet" action={create('default')}>
            Create one for each kind of email that people can leave by itself, such as a newsletter.
          </Empty>
        }
      />
      {isCreating && <CreateAudience onClose={() => setCreating(false)} />}
      {asked?.act === 'edit' && <EditAudience audience={asked.audience} onClose={close} />}
      {asked?.act === 'delete' && <DeleteAudience audience={asked.audience} onClose={close} />}
    </Screen>
  )
}

function CreateAudience({ onClose }: { onClose: () => void }) {
  const { path } = useScope()
  const navigate = useNavigate()
  const create = useChange('POST /v1/audiences')
  const { form, ...sending } = useApiForm({
    initial: audienceValues(null),
    fieldOf: audiencePaths,
    send: async (values) => {
      const { name, description } = values
      const doubleOptIn = doubleOptInOf(values)
      const body = { name, ...(description !== '' && { description }), ...(doubleOptIn !== null && { doubleOptIn }) }
      const { id } = await create.mutateAsync({ body })
      onClose()
      await navigate({ to: path(`/audiences/${id}`) })
    },
  })
  return (
    <FormDialog title="Create an audience" action="Create audience" {...sending} onClose={onClose}>
      <AudienceFields form={form} mayChangeAsking />
    </FormDialog>
  )
}
