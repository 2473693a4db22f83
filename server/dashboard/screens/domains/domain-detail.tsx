import { Alert, Button, Group, Menu } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { DeleteByName } from '../../components/delete-by-name.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { MoreMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { ExactTime, Time } from '../../components/time.tsx'
import { DnsRecord } from './dns-record.tsx'

type Domain = Result<'GET /v1/domains/:id'>

const pollMs = 15_000

/** One domain: which records to publish, and what was found of each. */
export function DomainDetail() {
  const { id = '' } = useParams({ strict: false })
  const { can, mode } = useScope()
  const query = useGet(
    'GET /v1/domains/:id',
    { params: { id } },
    { pollMs: (domain) => (domain?.status === 'pending' ? pollMs : false) },
  )
  const verify = useChange('POST /v1/domains/:id/verify')
  const { data: domain } = query
  const mayWrite = can('domains:write') && mode === 'live'
  return (
    <Screen
      title={domain?.name ?? 'Domain'}
      parent={{ label: 'Domains', path: '/domains' }}
      subtitle={domain && <State of={domain.status} />}
      action={
        domain &&
        mayWrite && (
          <Group gap="xs">
            <DomainMenu domain={domain} />
            <Button loading={verify.isPending} onClick={() => verify.mutate({ params: { id } })}>
              Check now
            </Button>
          </Group>
        )
      }
    >
      {verify.error !== null && <ErrorNotice error={verify.error} />}
      <Loaded query={query} what="domain">
        {(read) => <Details domain={read} />}
      </Loaded>
    </Screen>
  )
}

function Details({ domain }: { domain: Domain }) {
  const missing = domain.records.filter(({ required, status }) => required && status !== 'verified').length
  return (
    <>
      {domain.status !== 'verified' && (
        <Alert color="gray" mb="lg" role="note" title={`${missing} of the required records are not found yet`}>
          Publish the records below where you manage the DNS of {domain.name}.{' '}
          {domain.nextCheckAt === null ? (
            'They are not checked any more by themselves: check now when they are published.'
          ) : (
            <>
              They are checked again <Time at={domain.nextCheckAt} isAhead />.
            </>
          )}
        </Alert>
      )}
      <Facts
        of={[
          ['Return path', <Copyable key="path" label="Copy the return path" value={domain.returnPath} />],
          ['Last checked', <Time key="at" at={domain.lastCheckedAt} none="Not yet" />],
          ...(domain.verifiedAt === null
            ? []
            : ([['Verified', <ExactTime key="at" at={domain.verifiedAt} />]] as const)),
          ['ID', <Copyable key="id" label="Copy the ID" value={domain.id} />],
        ]}
      />
      <Section
        title="DNS records"
        action={<ScreenLink to={`/domains/${domain.id}/deliverability`}>Check the deliverability</ScreenLink>}
      >
        {domain.records.map((record) => (
          <DnsRecord key={`${record.purpose} ${record.name} ${record.key}`} record={record} />
        ))}
      </Section>
      {domain.retiredRecords.length > 0 && <RetiredRecords records={domain.retiredRecords} />}
    </>
  )
}

type RetiredRecord = Domain['retiredRecords'][number]

const retiredColumns: Column<RetiredRecord>[] = [
  {
    header: 'TXT record',
    cell: ({ name }) => <Copyable label="Copy the name of an earlier record" value={name} />,
  },
  { header: 'Keep until', width: '200px', align: 'right', cell: ({ removableAt }) => <ExactTime at={removableAt} /> },
]

function RetiredRecords({ records }: { records: Domain['retiredRecords'] }) {
  return (
    <Section title="Records of earlier keys">
      <p className="dimmed">
        These keys sign nothing any more. Receivers still check mail with them that was signed before: keep each record
        until the time shown, then remove it from the DNS.
      </p>
      <PlainTable label="Records of earlier keys" rows={records} columns={retiredColumns} keyOf={({ name }) => name} />
    </Section>
  )
}

function DomainMenu({ domain }: { domain: Domain }) {
  const [act, setAct] = useState<'rotate' | 'delete' | null>(null)
  const close = () => setAct(null)
  return (
    <>
      <MoreMenu>
        <Menu.Item onClick={() => setAct('rotate')}>Rotate the keys</Menu.Item>
        <Menu.Item color="red" onClick={() => setAct('delete')}>
          Delete
        </Menu.Item>
      </MoreMenu>
      {act === 'rotate' && <RotateKeys domain={domain} onClose={close} />}
      {act === 'delete' && <DeleteDomain domain={domain} onClose={close} />}
    </>
  )
}

type Props = { domain: Domain; onClose: () => void }

function RotateKeys({ domain: { id }, onClose }: Props) {
  const rotate = useChange('POST /v1/domains/:id/rotate-keys')
  return (
    <Confirm
      title="Rotate the DKIM keys?"
      action="Rotate the keys"
      isHarmless
      isRunning={rotate.isPending}
      error={rotate.error}
      onClose={onClose}
      onConfirm={() => rotate.mutate({ params: { id }, body: {} }, { onSuccess: onClose })}
    >
      New keys are made. The present ones sign until the records of the new ones are published and found.
    </Confirm>
  )
}

function DeleteDomain({ domain: { id, name }, onClose }: Props) {
  return (
    <DeleteByName
      operation="DELETE /v1/domains/:id"
      input={{ params: { id } }}
      what="domain"
      name={name}
      leadsTo="/domains"
      onClose={onClose}
    >
      Nothing more is sent from it, and its keys are gone for good.
    </DeleteByName>
  )
}
