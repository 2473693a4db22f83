import { Alert, Button, Menu, Text } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { type RowOf, useChange, useList } from '../../api/hooks.ts'
import { useSignInMethods, worksHere } from '../../api/passkeys.ts'
import { Confirm } from '../../components/confirm.tsx'
import { actionsColumn, type Column, DataTable } from '../../components/data-table.tsx'
import { Section } from '../../components/facts.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Time } from '../../components/time.tsx'
import { AddPasskey } from './add-passkey.tsx'
import { RenamePasskey } from './rename-passkey.tsx'

type Passkey = RowOf<'GET /v1/user/passkeys'>

type Asked = { act: 'add' } | { act: 'rename' | 'remove'; passkey: Passkey }

/** The passkeys of the user. */
export function Passkeys() {
  const [asked, setAsked] = useState<Asked | null>(null)
  const list = useList('GET /v1/user/passkeys', {})
  const origin = useSignInMethods()?.passkeyOrigin
  const isHere = worksHere(origin)
  const close = () => setAsked(null)

  const columns: Column<Passkey>[] = [
    {
      header: 'Name',
      cell: ({ name, isSynced }) => (
        <>
          {name}
          <span className="second-line">{isSynced ? 'Synced' : 'On one device'}</span>
        </>
      ),
    },
    {
      header: 'Last used',
      width: '140px',
      cell: ({ lastUsedAt }) => <Time at={lastUsedAt} none="Never" />,
    },
    { header: 'Added', width: '140px', isMinor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
    actionsColumn('56px', (passkey) => (
      <RowMenu of={passkey.name}>
        <Menu.Item onClick={() => setAsked({ act: 'rename', passkey })}>Rename</Menu.Item>
        <Menu.Item color="red" onClick={() => setAsked({ act: 'remove', passkey })}>
          Remove
        </Menu.Item>
      </RowMenu>
    )),
  ]

  return (
    <Section
      title="Passkeys"
      action={
        isHere && (
          <Button
            size="xs"
            variant="default"
            leftSection={<IconPlus size={16} aria-hidden />}
            onClick={() => setAsked({ act: 'add' })}
          >
            Add a passkey
          </Button>
        )
      }
    >
      {origin !== undefined && !isHere && <Elsewhere origin={origin} />}
      <Refused passkeys={list.rows ?? []} />
      <DataTable
        label="Passkeys"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Text c="dimmed" maw={560}>
            None yet. A passkey signs you in with the fingerprint, face or PIN of your device, without password and
            code.
          </Text>
        }
      />
      {asked?.act === 'add' && <AddPasskey onClose={close} />}
      {asked?.act === 'rename' && <RenamePasskey passkey={asked.passkey} onClose={close} />}
      {asked?.act === 'remove' && <RemovePasskey passkey={asked.passkey} onClose={close} />}
    </Section>
  )
}

/** Tells of passkeys that there may be copies of. */
function Refused({ passkeys }: { passkeys: readonly Passkey[] }) {
  return passkeys.flatMap(({ id, name, refusedAt }) =>
    refusedAt === null
      ? []
      : [
          <Alert key={id} color="red" variant="outline" className="notice" mb="sm">
            {name} was refused <Time at={refusedAt} />: its counter went back, so there may be a copy of it. Remove it,
            and change your password if you do not know who signed in.
          </Alert>,
        ],
  )
}

function Elsewhere({ origin }: { origin: string | null }) {
  if (origin === null) {
    return (
      <Text c="dimmed" maw={560} mb="sm">
        This service has no address that passkeys work on: they need https and a host name. Its operator sets{' '}
        <code>PUBLIC_URL</code>.
      </Text>
    )
  }
  const isSamePage = origin === window.location.origin
  return (
    <Text c="dimmed" maw={560} mb="sm">
      {isSamePage ? (
        'This browser has no passkeys.'
      ) : (
        <>
          Passkeys work at <a href={`${origin}/app`}>{origin}</a>, and not at the address of this page.
        </>
      )}
    </Text>
  )
}

function RemovePasskey({ passkey, onClose }: { passkey: Passkey; onClose: () => void }) {
  const remove = useChange('DELETE /v1/user/passkeys/:id')
  return (
    <Confirm
      title={`Remove ${passkey.name}?`}
      action="Remove the passkey"
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { id: passkey.id } }, { onSuccess: onClose })}
    >
      It signs you in no more. Sessions that it has started go on. Your device keeps it until you delete it there too.
    </Confirm>
  )
}
