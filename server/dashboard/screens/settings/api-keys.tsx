import { Button, Code, Menu } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { type RowOf, useChange, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { actionsColumn, type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { CreateApiKey } from './create-api-key.tsx'
import { describeGrants } from './grants.ts'

type ApiKey = RowOf<'GET /v1/api-keys'>

function stateOf({ revokedAt, expiresAt }: ApiKey): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'active'
}

/** The permissions of a key, and the addresses that it may be used from. */
function Allowed({ of: { permissions, allowedAddresses } }: { of: ApiKey }) {
  return (
    <>
      {describeGrants(permissions)}
      {allowedAddresses.length > 0 && <span className="second-line">Only from {allowedAddresses.join(', ')}</span>}
    </>
  )
}

function LastUsed({ of: { id, lastUsedAt, lastUsedFrom } }: { of: ApiKey }) {
  return (
    <>
      <ScreenLink to="/logs" search={{ key: id }}>
        <Time at={lastUsedAt} none="Never" />
        <span className="visually-hidden">: its requests</span>
      </ScreenLink>
      {lastUsedFrom !== null && <span className="second-line">{lastUsedFrom}</span>}
    </>
  )
}

const makers: Readonly<Record<ApiKey['createdBy']['type'], string>> = {
  key: 'another key',
  user: 'a user',
  portal_session: 'a customer',
  command_line: 'the command line',
}

/** When a key was made, and by what. The audit log has the name. */
function Created({ of: { createdAt, createdBy } }: { of: ApiKey }) {
  return (
    <>
      <Time at={createdAt} />
      <span className="second-line">by {makers[createdBy.type]}</span>
    </>
  )
}

const columns: readonly Column<ApiKey>[] = [
  {
    header: 'Name',
    cell: ({ name, mode, lastFour }) => (
      <>
        {name}
        <span className="second-line mono">{`postern_${mode}_…${lastFour}`}</span>
      </>
    ),
    phoneLine: (key) => (
      <>
        <State of={stateOf(key)} />
        <span className="second-line">
          <Allowed of={key} />
        </span>
        <span className="second-line">
          Last used: <LastUsed of={key} />
        </span>
        <span className="second-line">
          Expires: <Time at={key.expiresAt} none="Never" />
        </span>
        <span className="second-line">
          Created: <Created of={key} />
        </span>
      </>
    ),
  },
  { header: 'State', width: '110px', isMinor: true, cell: (key) => <State of={stateOf(key)} /> },
  { header: 'Permissions', isMinor: true, cell: (key) => <Allowed of={key} /> },
  {
    header: 'Last used',
    width: '150px',
    isMinor: true,
    cell: (key) => <LastUsed of={key} />,
  },
  { header: 'Expires', width: '140px', isMinor: true, cell: ({ expiresAt }) => <Time at={expiresAt} none="Never" /> },
  { header: 'Created', width: '140px', isMinor: true, cell: (key) => <Created of={key} /> },
]

/** Keys of this mode: make, revoke, delete. */
export function ApiKeys() {
  const { mode, can } = useScope()
  const [isCreating, setCreating] = useState(false)
  const [asked, setAsked] = useState<{ act: 'revoke' | 'delete'; apiKey: ApiKey } | null>(null)
  const list = useList('GET /v1/api-keys', {})
  const mayWrite = can('api_keys:write')
  const create = (variant: 'filled' | 'default') =>
    mayWrite && (
      <Button variant={variant} leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setCreating(true)}>
        Create API key
      </Button>
    )
  const actions = actionsColumn<ApiKey>('56px', (apiKey) => (
    <RowMenu of={apiKey.name}>
      {apiKey.revokedAt === null && <Menu.Item onClick={() => setAsked({ act: 'revoke', apiKey })}>Revoke</Menu.Item>}
      <Menu.Item color="red" onClick={() => setAsked({ act: 'delete', apiKey })}>
        Delete
      </Menu.Item>
    </RowMenu>
  ))
  return (
    <Screen
      title="API keys"
      subtitle={`Keys that your programs call the API with, in ${mode} mode.`}
      action={create('filled')}
    >
      <div className="wrapped">
        <DataTable
          label="API keys"
          list={list}
          columns={mayWrite ? [...columns, actions] : columns}
          keyOf={({ id }) => id}
          empty={
            <Empty title={`No ${mode} keys yet`} action={create('default')}>
              Create a key, then send it with each request: <Code>Authorization: Bearer postern_{mode}_…</Code>
            </Empty>
          }
        />
      </div>
      {isCreating && <CreateApiKey onClose={() => setCreating(false)} />}
      {asked?.act === 'revoke' && <RevokeKey apiKey={asked.apiKey} onClose={() => setAsked(null)} />}
      {asked?.act === 'delete' && <DeleteKey apiKey={asked.apiKey} onClose={() => setAsked(null)} />}
    </Screen>
  )
}

type AskProps = { apiKey: ApiKey; onClose: () => void }

function RevokeKey({ apiKey: { id, name }, onClose }: AskProps) {
  const revoke = useChange('POST /v1/api-keys/:id/revoke')
  return (
    <Confirm
      title={`Revoke “${name}”?`}
      action="Revoke the key"
      isRunning={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={() =>
        revoke.mutate(
          { params: { id } },
          {
            onSuccess: () => {
              notifications.show({ message: `“${name}” was revoked.` })
              onClose()
            },
          },
        )
      }
    >
      Requests with this key are refused from now on. It cannot be used again. The entry stays in this list.
    </Confirm>
  )
}

function DeleteKey({ apiKey: { id, name }, onClose }: AskProps) {
  const remove = useChange('DELETE /v1/api-keys/:id')
  return (
    <Confirm
      title={`Delete “${name}”?`}
      action="Delete the key"
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() =>
        remove.mutate(
          { params: { id } },
          {
            onSuccess: () => {
              notifications.show({ message: `“${name}” was deleted.` })
              onClose()
            },
          },
        )
      }
    >
      Requests with this key are refused from now on, and it leaves this list. What was done with it stays in the audit
      log.
    </Confirm>
  )
}
